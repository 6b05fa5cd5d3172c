//! A pping that keeps watching while the network changes. In the guest, loading its programs takes longer than anything
//! else, so tests start it as rarely as possible.

use std::{thread, time::Duration};

use pping_lab::{Namespace, Process};

use super::{
    monitor::{interrupt, ok, watch},
    records::{Records, Sample},
};

/// The output counts as complete after this long without a new line. The guest's clock skips idle time.
const QUIET: Duration = Duration::from_secs(3);

/// How long nothing is timed after a start. This costs next to nothing, because the guest's clock skips idle time.
const SETTLING: Duration = Duration::from_secs(3);

pub(super) struct Watched {
    pping: Process,
    /// The number of samples already taken.
    taken: usize,
}

impl Watched {
    /// Starts a pping that reports every sample of an interface. The table is small, so that sweeps delay nothing.
    pub(super) fn start(host: &Namespace, interface: &str, arguments: &str) -> Self {
        let pping = watch(host, interface, &format!("--rate-limit 0 --max-flows 1024 {arguments}"));
        schedule(pping.id(), libc::SCHED_IDLE);
        // After verifying programs, the kernel has a lot to clean up, and does so with a delay.
        thread::sleep(SETTLING);
        Self { pping, taken: 0 }
    }

    /// Returns the new samples, once no more arrive.
    pub(super) fn take(&mut self) -> Vec<Sample> {
        // Nothing is timed now, so pping may use the processor.
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

    /// Ends pping, and asserts that no samples are left.
    pub(super) fn finish(self) {
        let all = Records::parse(&interrupt(self.pping)).samples;
        assert_eq!(all.len(), self.taken, "unexpected samples: {:?}", &all[self.taken..]);
    }
}

/// Sets a process's scheduling policy. With `SCHED_IDLE` it runs only if nothing else does. There is only one
/// processor, so pping's work once a second would delay packets and show in their RTTs.
fn schedule(process: u32, policy: libc::c_int) {
    for task in std::fs::read_dir(format!("/proc/{process}/task")).unwrap() {
        let task: i32 = task.unwrap().file_name().to_str().unwrap().parse().unwrap();
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: a valid pointer to parameters.
        assert_eq!(unsafe { libc::sched_setscheduler(task, policy, &raw const parameters) }, 0);
    }
}
