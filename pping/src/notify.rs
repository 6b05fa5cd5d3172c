//! Notifications to the service manager, if one listens (`sd_notify(3)`).

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use sd_notify::NotifyState;

/// Tells the service manager how it goes. Without one (no `NOTIFY_SOCKET`) all of this does nothing.
pub(crate) struct Notify {
    /// The interval of keep-alives, if the manager wants them.
    interval: Option<Duration>,
    /// When that was last said.
    said: Cell<Option<Instant>>,
    has_warned: Cell<bool>,
}

impl Notify {
    /// As the environment asks for: `WATCHDOG_USEC`, unless `WATCHDOG_PID` names another process.
    pub(crate) fn from_environment() -> Self {
        // Twice in that time is what systemd asks for; four times leaves room for a busy machine.
        let interval = sd_notify::watchdog_enabled().map(|watchdog| watchdog / 4);
        Self { interval, said: Cell::default(), has_warned: Cell::default() }
    }

    /// Everything is attached, or has been read again.
    pub(crate) fn ready(&self, status: &str) {
        self.send(&[NotifyState::Ready, NotifyState::Status(&one_line(status))]);
    }

    /// Files are being read again. [`Notify::ready`] says when that is done.
    pub(crate) fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => self.send(&[NotifyState::Reloading, now]),
            // Newer managers take the one only with the other.
            Err(error) => tracing::debug!("no monotonic clock: {error}"),
        }
    }

    /// The end has begun.
    pub(crate) fn stopping(&self) {
        self.send(&[NotifyState::Stopping, NotifyState::Status("detaching")]);
    }

    /// The status for `systemctl status`.
    pub(crate) fn status(&self, text: &str) {
        self.send(&[NotifyState::Status(&one_line(text))]);
    }

    /// The ring was drained and the kernel's maps were swept. A manager that hears nothing of it for too long starts
    /// pping again.
    pub(crate) fn alive(&self) {
        let Some(interval) = self.interval else { return };
        let now = Instant::now();
        if self.said.get().is_none_or(|said| now.duration_since(said) >= interval) {
            self.said.set(Some(now));
            self.send(&[NotifyState::Watchdog]);
        }
    }

    fn send(&self, state: &[NotifyState<'_>]) {
        if let Err(error) = sd_notify::notify(state)
            && !self.has_warned.replace(true)
        {
            tracing::warn!("the service manager (NOTIFY_SOCKET) cannot be told anything: {error}");
        }
    }
}

/// A line each is what the protocol has.
fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}
