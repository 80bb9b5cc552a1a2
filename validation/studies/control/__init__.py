"""The computed-torque study of the 3-RRR: does control with sensed passive joints withstand wrong parameters better?"""
