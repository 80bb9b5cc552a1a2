"""The reference: closed-loop kinematics and dynamics as equations in numpy. Never calls an engine's dynamics."""
