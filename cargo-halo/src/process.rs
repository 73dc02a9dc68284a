//! Runs other programs and returns their output or their outcome.

use std::ffi::OsString;
use std::process::{Command, Output};

use crate::command_line;
use crate::error::Error;
use crate::outcome::Outcome;

/// The cargo that runs this program, or the one on PATH.
pub fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Runs a command and returns its standard output as text.
///
/// # Errors
///
/// When it cannot be started, and when it fails: the error then contains the text on its standard
/// error.
pub fn output(command: &mut Command) -> Result<String, Error> {
    finished(command).map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// As [`output`], followed by the text on standard error.
pub fn both_outputs(command: &mut Command) -> Result<String, Error> {
    let output = finished(command)?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Ok(text)
}

/// Runs a command that prints its own errors.
///
/// # Errors
///
/// When it cannot be started.
pub fn outcome(command: &mut Command) -> Result<Outcome, Error> {
    let status = command.status().map_err(Error::start(command))?;
    Ok(if status.success() {
        Outcome::Clean
    } else {
        Outcome::Findings
    })
}

fn finished(command: &mut Command) -> Result<Output, Error> {
    let output = command.output().map_err(Error::start(command))?;
    if !output.status.success() {
        return Err(Error::Command {
            command: command_line::all(command),
            status: output.status,
            output: String::from_utf8_lossy(&output.stderr).into_owned(),
        });
    }
    Ok(output)
}
