// The measures of pictures, in pixels: shared by what is drawn one below the other.
#ifndef FATHOM_DRAW_CHART_LAYOUT_H
#define FATHOM_DRAW_CHART_LAYOUT_H

enum {
    WIDTH = 960,
    LEFT = 80,
    RIGHT = 20,
    SPAN = WIDTH - LEFT - RIGHT,
    TITLE = 40,
    PLOT = 300,
    AXIS = 30,
    ROW = 22, // of the legend
    PANEL_GAP = 24,
    FONT = 13,
    TITLE_FONT = 16,
    SWATCH = 18,    // with the space after it
    ENTRY_GAP = 24, // after a name
};

#endif
