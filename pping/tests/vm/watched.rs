//! A pping that goes on watching while what it watches changes: to load its programs takes longer in here than anything
//! else does, so that a test starts it as seldom as it can.

use std::{thread, time::Duration};

use pping_lab::{Namespace, Process};

use super::{
    monitor::{interrupt, ok, watch},
    records::{Records, Sample},
};

/// How long no line has to come before none is expected any more. The guest's clock makes it short.
const QUIET: Duration = Duration::from_millis(1500);

pub(super) struct Watched {
    pping: Process,
    /// Samples that were taken already.
    taken: usize,
}

impl Watched {
    /// Every sample of an interface, with more arguments.
    pub(super) fn start(host: &Namespace, interface: &str, arguments: &str) -> Self {
        Self { pping: watch(host, interface, &format!("--rate-limit 0 {arguments}")), taken: 0 }
    }

    /// The samples since the last time, once there are no more.
    pub(super) fn take(&mut self) -> Vec<Sample> {
        let mut text = ok(self.pping.stdout());
        loop {
            thread::sleep(QUIET);
            let more = ok(self.pping.stdout());
            if more == text {
                break;
            }
            text = more;
        }
        let samples = Records::parse(&text).samples.split_off(self.taken);
        self.taken += samples.len();
        samples
    }

    /// Ends it, and makes sure that nothing came that was not taken.
    pub(super) fn finish(self) {
        let all = Records::parse(&interrupt(self.pping)).samples;
        assert_eq!(all.len(), self.taken, "samples that nobody expected: {:?}", &all[self.taken..]);
    }
}
