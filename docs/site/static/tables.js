// Gives each large table search, sorting, filters and pages; without JavaScript it is a plain table.
(async () => {
  const address = URL.createObjectURL(new Blob([window.dataTablesModule], { type: "text/javascript" }));
  const { ITable } = await import(address);
  URL.revokeObjectURL(address);
  for (const table of document.querySelectorAll("table.searchable")) {
    const order = table.dataset.orderColumn ? [[Number(table.dataset.orderColumn), "desc"]] : [];
    new ITable(table, {
      order,
      pageLength: Number(table.dataset.length),
      lengthMenu: [25, 50, 100, { label: "all", value: -1 }],
      autoWidth: false,
      columnDefs: [
        { targets: ".filter", columnControl: [["searchList"]] },
        { targets: ".axis-head", orderable: false },
      ],
      layout: { topStart: "search", topEnd: "pageLength", bottomStart: "info", bottomEnd: "paging" },
    });
  }
})();
