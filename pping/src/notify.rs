//! Notifications to the service manager, if one listens (`sd_notify(3)`).

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use sd_notify::NotifyState;

/// Reports the state of pping to the service manager. Without one (no `NOTIFY_SOCKET`) it does nothing.
pub(crate) struct Notify {
    /// The interval of keep-alives, if the manager wants them.
    interval: Option<Duration>,
    /// When the last keep-alive was sent.
    last_keepalive: Cell<Option<Instant>>,
    has_warned: Cell<bool>,
}

impl Notify {
    /// Reads the interval from `WATCHDOG_USEC`, unless `WATCHDOG_PID` names another process.
    pub(crate) fn from_environment() -> Self {
        // systemd asks for two keep-alives in that time. Four leave room for a busy machine.
        let interval = sd_notify::watchdog_enabled().map(|watchdog| watchdog / 4);
        Self { interval, last_keepalive: Cell::default(), has_warned: Cell::default() }
    }

    /// Reports that everything is attached, or that a reload is done.
    pub(crate) fn ready(&self, status: &str) {
        self.send(&[NotifyState::Ready, NotifyState::Status(&one_line(status))]);
    }

    /// Reports that a reload has begun. [`Notify::ready`] reports its end.
    pub(crate) fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => self.send(&[NotifyState::Reloading, now]),
            // Newer managers accept `RELOADING` only together with the time.
            Err(error) => tracing::debug!("no monotonic clock: {error}"),
        }
    }

    /// Reports that pping is stopping.
    pub(crate) fn stopping(&self) {
        self.send(&[NotifyState::Stopping, NotifyState::Status("detaching")]);
    }

    /// Sets the status that `systemctl status` shows.
    pub(crate) fn status(&self, text: &str) {
        self.send(&[NotifyState::Status(&one_line(text))]);
    }

    /// Reports that the ring was drained and the kernel's maps were swept. A manager that does not hear this for too
    /// long restarts pping.
    pub(crate) fn alive(&self) {
        let Some(interval) = self.interval else { return };
        let now = Instant::now();
        if self.last_keepalive.get().is_none_or(|last| now.duration_since(last) >= interval) {
            self.last_keepalive.set(Some(now));
            self.send(&[NotifyState::Watchdog]);
        }
    }

    fn send(&self, state: &[NotifyState<'_>]) {
        if let Err(error) = sd_notify::notify(state)
            && !self.has_warned.replace(true)
        {
            tracing::warn!("cannot notify the service manager (NOTIFY_SOCKET): {error}");
        }
    }
}

/// Removes line breaks: the protocol has one line per state.
fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}
