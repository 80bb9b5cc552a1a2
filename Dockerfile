# loopcheck with MuJoCo and PyBullet: docker build -t loopcheck .
# docker run --rm -v "$PWD:/models" loopcheck gate my_robot.xml
FROM python:3.11-slim AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /dist .

FROM python:3.11-slim
COPY --from=build /dist /dist
RUN pip install --no-cache-dir /dist/*.whl && rm -r /dist && useradd --create-home loopcheck
USER loopcheck
WORKDIR /models
ENTRYPOINT ["loopcheck"]
CMD ["--help"]
