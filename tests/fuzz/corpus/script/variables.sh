A=xx
A=$A$A
data.x=$A
