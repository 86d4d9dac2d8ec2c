"""What the parts of a roofline's picture have in common: sizes in inches and points, colours."""

# At 100 mm wide the smallest letters are still 5 points high.
WIDTH, LEFT, RIGHT, LINE = 5.6, 0.48, 1.74, 0.13
TEXT, SMALL, TINY = 8.5, 7.8, 7.2
INK, SOFT, FAINT, GRID = "#1b1b1b", "#5a5a5a", "#c4c4c4", "#efefef"
COLOURS = {"dram": "#0072b2", "l2": "#00805e", "l1": "#a34e86"}
