use std::{
    fs::File,
    os::unix::fs::FileExt,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::{
    Error, Result,
    error::Context,
    run::{command_line, start_error},
};

/// How often a wait polls.
const POLL: Duration = Duration::from_millis(2);

/// A program that runs beside the test, killed on drop.
///
/// Its output goes to unnamed files, so that it never blocks on a pipe without a reader.
#[derive(Debug)]
pub struct Process {
    command: String,
    child: Child,
    stdout: File,
    stderr: File,
}

impl Process {
    /// Starts a command, such as one from [`crate::Namespace::command`], with empty standard input.
    ///
    /// # Errors
    /// [`Error::Start`] if there is no such program.
    pub fn spawn(mut command: Command) -> Result<Self> {
        let file = || tempfile::tempfile().while_doing(|| "make a temporary file".to_owned());
        let (stdout, stderr) = (file()?, file()?);
        let share = |file: &File| file.try_clone().while_doing(|| "share a temporary file".to_owned());
        command.stdin(Stdio::null()).stdout(share(&stdout)?).stderr(share(&stderr)?);
        let child = command.spawn().map_err(|reason| start_error(&command, reason))?;
        Ok(Self { command: command_line(&command), child, stdout, stderr })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its standard output so far.
    ///
    /// # Errors
    /// If the temporary file cannot be read.
    pub fn stdout(&self) -> Result<String> {
        read(&self.stdout)
    }

    /// Its standard error so far.
    ///
    /// # Errors
    /// If the temporary file cannot be read.
    pub fn stderr(&self) -> Result<String> {
        read(&self.stderr)
    }

    /// Sends a signal, unless the process has ended.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn signal(&mut self, signal: Signal) -> Result<()> {
        // The id may belong to another process once this one is reaped, which `status` finds out.
        if self.status()?.is_some() {
            return Ok(());
        }
        let pid = Pid::from_raw(self.child.id() as i32);
        kill(pid, signal).while_doing(|| format!("send {signal} to `{}`", self.command))
    }

    /// How it ended, or `None` while it runs.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn status(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().while_doing(|| format!("wait for `{}`", self.command))
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// [`Error::Timeout`], with the output so far, if the program still runs then. It goes on running.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<ExitStatus> {
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(status) = self.status()? {
                return Ok(status);
            }
            if Instant::now() >= deadline {
                return Err(self.timeout(format!("the end of `{}`", self.command), timeout)?);
            }
            thread::sleep(POLL);
        }
    }

    /// Sends a signal and waits until the program has ended successfully. On SIGINT, pping, tcpdump and others print a
    /// summary.
    ///
    /// # Errors
    /// [`Error::Timeout`] if it does not end, [`Error::Failed`] if it ends without success.
    pub fn stop(&mut self, signal: Signal, timeout: Duration) -> Result<()> {
        self.signal(signal)?;
        let status = self.wait_timeout(timeout)?;
        if status.success() {
            return Ok(());
        }
        Err(Error::Failed { command: self.command.clone(), status, stderr: self.stderr()?.trim().to_owned() })
    }

    /// Waits until its standard output or standard error contains `text`.
    ///
    /// # Errors
    /// [`Error::Failed`] if it ends first, [`Error::Timeout`] if it takes too long; both with its output.
    pub fn wait_for_output(&mut self, text: &str, timeout: Duration) -> Result<()> {
        let deadline = Instant::now() + timeout;
        loop {
            // The status comes first, because output written just before the end counts.
            let ended = self.status()?;
            if self.stdout()?.contains(text) || self.stderr()?.contains(text) {
                return Ok(());
            }
            if let Some(status) = ended {
                let stderr = format!("it ended without `{text}`{}", self.transcript()?);
                return Err(Error::Failed { command: self.command.clone(), status, stderr });
            }
            if Instant::now() >= deadline {
                return Err(self.timeout(format!("`{text}` from `{}`", self.command), timeout)?);
            }
            thread::sleep(POLL);
        }
    }

    fn timeout(&self, awaited: String, timeout: Duration) -> Result<Error> {
        Ok(Error::Timeout { awaited, timeout, context: self.transcript()? })
    }

    fn transcript(&self) -> Result<String> {
        Ok(format!("\n--- standard output\n{}\n--- standard error\n{}", self.stdout()?, self.stderr()?))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if it has ended and been reaped.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Reads a file from its start without moving the position at which the process writes.
fn read(file: &File) -> Result<String> {
    let mut content = Vec::new();
    let mut part = [0; 8192];
    loop {
        match file
            .read_at(&mut part, content.len() as u64)
            .while_doing(|| "read a temporary file".to_owned())?
        {
            0 => return Ok(String::from_utf8_lossy(&content).into_owned()),
            length => content.extend_from_slice(&part[..length]),
        }
    }
}
