//! A pping that keeps watching while the network changes. Loading its programs takes longer in here than anything
//! else, so a test starts it as rarely as possible.

use std::{thread, time::Duration};

use pping_lab::{Namespace, Process};

use super::{
    monitor::{interrupt, ok, watch},
    records::{Records, Sample},
};

/// How long no line may come before the output counts as complete. The guest's clock skips idle time.
const QUIET: Duration = Duration::from_secs(3);

/// How long nothing is timed after a start. It costs next to nothing, because the guest's clock skips idle time.
const SETTLING: Duration = Duration::from_secs(3);

pub(super) struct Watched {
    pping: Process,
    /// The number of samples already taken.
    taken: usize,
}

impl Watched {
    /// Reports every sample of an interface, with more arguments. The table is small, so that a sweep delays nothing.
    pub(super) fn start(host: &Namespace, interface: &str, arguments: &str) -> Self {
        let pping = watch(host, interface, &format!("--rate-limit 0 --max-flows 1024 {arguments}"));
        schedule(pping.id(), libc::SCHED_IDLE);
        // The kernel has a lot to clean up after verifying programs, and does it in its own time.
        thread::sleep(SETTLING);
        Self { pping, taken: 0 }
    }

    /// The new samples, once no more arrive.
    pub(super) fn take(&mut self) -> Vec<Sample> {
        // Nothing is timed at this point, so pping may use the processor.
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

    /// Ends it, and asserts that no samples are left.
    pub(super) fn finish(self) {
        let all = Records::parse(&interrupt(self.pping)).samples;
        assert_eq!(all.len(), self.taken, "unexpected samples: {:?}", &all[self.taken..]);
    }
}

/// Sets a process's scheduling policy. With `SCHED_IDLE` it runs only when nothing else does: there is one processor,
/// and what pping does once a second would delay packets, and so be measured.
fn schedule(process: u32, policy: libc::c_int) {
    for task in std::fs::read_dir(format!("/proc/{process}/task")).unwrap() {
        let task: i32 = task.unwrap().file_name().to_str().unwrap().parse().unwrap();
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: a valid pointer to parameters.
        assert_eq!(unsafe { libc::sched_setscheduler(task, policy, &raw const parameters) }, 0);
    }
}
