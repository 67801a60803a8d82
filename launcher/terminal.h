// Whether somebody watches, and how wide the screen is. Under `drivetrain launch` the launcher's screen counts, since Open
// MPI gives every rank a pseudo terminal.
#pragma once

namespace drivetrain {

// Columns of the terminal behind an open file descriptor; 0 when it is not one.
int terminal_columns(int file_descriptor);

// Columns a rank may draw on at its standard output; 0: plain lines.
int console_columns();

}  // namespace drivetrain
