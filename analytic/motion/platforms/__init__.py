"""Inverse kinematics of platform robots in closed form, one file a platform: the actuated joints from the pose.

The poses are jets, so that a formula for the coordinate also gives its velocity and acceleration.
"""
