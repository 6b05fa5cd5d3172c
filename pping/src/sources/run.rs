//! What all sources do: they give up privileges, work in a thread, and end at a signal.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
    sync::oneshot,
    time::timeout,
};

use super::error::Error;
use crate::capabilities;

/// How long the work may take to end after a signal. It may just wait for an answer of pping.
const ENDING: Duration = Duration::from_secs(5);

/// Whether the work has to end.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Gives up all privileges. What others sent is read after that.
///
/// # Errors
/// If the kernel refuses.
pub(super) fn give_up_privileges() -> Result<(), Error> {
    capabilities::set_no_new_privs()?;
    Ok(capabilities::drop_all()?)
}

/// Works in a thread until SIGINT, SIGTERM, or the end of the work. SIGHUP changes nothing: whoever sends it to all of pping's
/// programs wants them to go on.
///
/// # Errors
/// That of the work.
pub(super) fn until_stopped(
    work: impl FnOnce(&Stop) -> Result<(), Error> + Send + 'static,
) -> Result<(), Error> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let (stop, (done, mut ended)) = (Stop::default(), oneshot::channel());
        let for_work = stop.clone();
        thread::Builder::new().name("groups-source".to_owned()).spawn(move || {
            // Nobody waits any more if this was told to stop, and took too long.
            done.send(work(&for_work)).ok();
        })?;
        loop {
            tokio::select! {
                ended = &mut ended => return ended.unwrap_or(Err(Error::Ended)),
                _ = interrupt.recv() => break,
                _ = terminate.recv() => break,
                _ = hangup.recv() => {}
            }
        }
        stop.0.store(true, Ordering::Relaxed);
        // A pping that hangs does not keep this from ending: what it did not accept, it did not get.
        timeout(ENDING, ended).await.map_or(Ok(()), |ended| ended.unwrap_or(Err(Error::Ended)))
    })
}

#[cfg(test)]
mod tests {
    use nix::sys::signal::{Signal, raise};

    use super::*;

    #[test]
    fn a_hangup_does_not_end_the_work() {
        until_stopped(|stop| {
            raise(Signal::SIGHUP).unwrap();
            thread::sleep(Duration::from_millis(200));
            assert!(!stop.is_set());
            Ok(())
        })
        .unwrap();
    }
}
