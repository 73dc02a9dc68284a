//! A command in words, for messages.

use std::process::Command;

/// The program's name without its folder.
pub fn program(command: &Command) -> String {
    std::path::Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program())
        .to_string_lossy()
        .into_owned()
}

/// The command line, in a form for messages.
pub fn all(command: &Command) -> String {
    let mut line = program(command);
    for argument in command.get_args() {
        line.push(' ');
        line.push_str(&argument.to_string_lossy());
    }
    line
}
