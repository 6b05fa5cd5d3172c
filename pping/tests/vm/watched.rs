//! A pping that goes on watching while what it watches changes: to load its programs takes longer in here than anything
//! else does, so that a test starts it as seldom as it can.

use std::{thread, time::Duration};

use pping_lab::{Namespace, Process};

use super::{
    monitor::{interrupt, ok, watch},
    records::{Records, Sample},
};

/// How long no line has to come before none is expected any more. The guest's clock makes it short.
const QUIET: Duration = Duration::from_secs(3);

/// How long after a start nothing is timed. It costs next to nothing, as the guest's clock jumps.
const SETTLING: Duration = Duration::from_secs(3);

pub(super) struct Watched {
    pping: Process,
    /// Samples that were taken already.
    taken: usize,
}

impl Watched {
    /// Every sample of an interface, with more arguments. There are few flows, and room for few, so that a sweep holds nobody
    /// up either.
    pub(super) fn start(host: &Namespace, interface: &str, arguments: &str) -> Self {
        let pping = watch(host, interface, &format!("--rate-limit 0 --max-flows 1024 {arguments}"));
        schedule(pping.id(), libc::SCHED_IDLE);
        // The kernel has a lot to tidy up after verifying programs, and does it in its own time.
        thread::sleep(SETTLING);
        Self { pping, taken: 0 }
    }

    /// The samples since the last time, once there are no more.
    pub(super) fn take(&mut self) -> Vec<Sample> {
        // Nothing is timed meanwhile, so it may have its share.
        schedule(self.pping.id(), libc::SCHED_OTHER);
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
        schedule(self.pping.id(), libc::SCHED_IDLE);
        samples
    }

    /// Ends it, and makes sure that nothing came that was not taken.
    pub(super) fn finish(self) {
        let all = Records::parse(&interrupt(self.pping)).samples;
        assert_eq!(all.len(), self.taken, "samples that nobody expected: {:?}", &all[self.taken..]);
    }
}

/// Has a process run by a policy. By `SCHED_IDLE` it does only when nobody else wants to: there is one processor, and what
/// pping does once a second would hold up packets, and so be measured.
fn schedule(process: u32, policy: libc::c_int) {
    for task in std::fs::read_dir(format!("/proc/{process}/task")).unwrap() {
        let task: i32 = task.unwrap().file_name().to_str().unwrap().parse().unwrap();
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: a valid pointer to parameters.
        assert_eq!(unsafe { libc::sched_setscheduler(task, policy, &raw const parameters) }, 0);
    }
}
