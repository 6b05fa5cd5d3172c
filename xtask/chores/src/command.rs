//! Runs programs. Each command is printed before it runs, and named when it fails.

use std::{
    convert::Infallible,
    ffi::OsStr,
    io::{BufRead as _, BufReader},
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};

/// Prints the command and waits for it. If it fails, returns an error that quotes it.
pub fn run(command: &mut Command) -> Result<()> {
    announce(command);
    let status = command.status().with_context(|| format!("could not start `{}`", line(command)))?;
    ensure!(status.success(), "`{}` failed: {status}", line(command));
    Ok(())
}

/// Runs the command as [`run`] does, and passes each line of its standard error to `take`.
pub fn run_and_read(command: &mut Command, mut take: impl FnMut(&str)) -> Result<()> {
    announce(command);
    let child = command.stderr(Stdio::piped()).spawn();
    let mut child = child.with_context(|| format!("could not start `{}`", line(command)))?;
    for line in child.stderr.take().into_iter().flat_map(|stderr| BufReader::new(stderr).split(b'\n')) {
        take(&String::from_utf8_lossy(&line?));
    }
    let status = child.wait()?;
    ensure!(status.success(), "`{}` failed: {status}", line(command));
    Ok(())
}

/// Runs the command to its end without printing it, and returns its standard output.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("could not start `{}`", line(command)))?;
    let (status, complaint) = (output.status, String::from_utf8_lossy(&output.stderr));
    ensure!(status.success(), "`{}` failed: {status}\n{}", line(command), complaint.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Replaces this process by the command. Returns only if the command cannot be started.
pub fn replace_process(command: &mut Command) -> Result<Infallible> {
    let error = command.exec();
    Err(error).with_context(|| format!("could not start `{}`", line(command)))
}

/// Whether the command succeeds. Its output is discarded.
pub fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Prints the command.
pub fn announce(command: &Command) {
    eprintln!("$ {}", line(command));
}

/// The command as one would type it, with the variables it sets.
fn line(command: &Command) -> String {
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some(format!("{}={}", name.to_string_lossy(), word(value?))));
    let words = std::iter::once(command.get_program()).chain(command.get_args()).map(word);
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

fn word(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let mut command = Command::new("cargo");
        command.env("LLVM_PREFIX", "/usr/lib/llvm-22").env_remove("CARGO");
        command.args(["test", "two words", "", "it's"]);
        assert_eq!(line(&command), r"LLVM_PREFIX=/usr/lib/llvm-22 cargo test 'two words' '' 'it'\''s'");
    }

    #[test]
    fn a_failure_quotes_the_command() {
        let error = run(Command::new("false").arg("really")).expect_err("false fails");
        assert!(error.to_string().contains("`false really` failed"), "{error}");
        let error =
            output(Command::new("sh").args(["-c", "echo reason >&2; false"])).expect_err("false fails");
        assert!(error.to_string().contains("reason"), "{error}");
        let error = run(&mut Command::new("no-such-program")).expect_err("there is no such program");
        assert!(error.to_string().contains("could not start `no-such-program`"), "{error}");
    }
}
