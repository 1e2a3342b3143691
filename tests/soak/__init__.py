"""A sweep that kills and faults every process of the program during real runs, and checks what is left of them."""
