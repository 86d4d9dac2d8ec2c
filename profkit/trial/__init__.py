"""Switches turned on from outside a program, measured against the unchanged program."""
