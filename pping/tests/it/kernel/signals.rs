//! Signals that arrive while programs are loaded.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

use nix::{
    libc::c_int,
    sys::{
        pthread::{pthread_kill, pthread_self},
        signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction},
    },
};
use pping::kernel::{load, load_options::LoadOptions};

extern "C" fn ignore(_: c_int) {}

/// The verifier gives up when a signal is pending.
#[test]
fn signals_do_not_interrupt_the_verifier() {
    let handler = SigAction::new(SigHandler::Handler(ignore), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handler does nothing, and nothing else here handles this signal.
    unsafe { sigaction(Signal::SIGURG, &handler) }.unwrap();
    let (loader, loaded) = (pthread_self(), AtomicBool::new(false));
    let kernel = thread::scope(|scope| {
        scope.spawn(|| {
            while !loaded.load(Relaxed) {
                pthread_kill(loader, Signal::SIGURG).unwrap();
            }
        });
        let kernel = load::load(&LoadOptions::DEFAULT, false);
        loaded.store(true, Relaxed);
        kernel
    });
    assert!(kernel.is_ok(), "{}", kernel.err().unwrap());
}
