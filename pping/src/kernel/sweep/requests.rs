//! The requests to the sweep program. The agent's sweeps and the [`super::renewer`] of the lease make them, one at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aya::programs::ProgramFd;
use pping_common::{
    abi::{SweepRequest, Threshold},
    arm::Arm,
    dns::QueryKey,
    field,
    parse::{Ipv4, Ipv6},
};

use crate::kernel::{Error, bpf, memory::Elements, object::refused};

/// The requests, shared by the threads that make them.
#[derive(Clone)]
pub(super) struct SharedRequests(Arc<Mutex<Requests>>);

impl SharedRequests {
    pub(super) fn new(requests: Requests) -> Self {
        Self(Arc::new(Mutex::new(requests)))
    }

    /// Waits until no other thread makes a request, and lets none make one until the guard is dropped.
    pub(super) fn lock(&self) -> MutexGuard<'_, Requests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The program and the maps of its requests.
pub(super) struct Requests {
    /// `None` until it is loaded.
    program: Option<ProgramFd>,
    request: Elements<SweepRequest>,
    due: Elements<u64>,
    /// The entries of watched interfaces.
    watched: Vec<u32>,
}

impl Requests {
    pub(super) fn new(request: Elements<SweepRequest>, due: Elements<u64>) -> Self {
        Self { program: None, request, due, watched: Vec::new() }
    }

    pub(super) fn set_program(&mut self, program: ProgramFd) {
        self.program = Some(program);
    }

    pub(super) fn set_watched(&mut self, entries: impl Iterator<Item = u32>) {
        self.watched = entries.collect();
    }

    /// Makes the program begin a sweep, and update the entries of watched interfaces.
    pub(super) fn begin(&self) -> Result<(), Error> {
        self.update_interfaces(SweepRequest::BEGIN)
    }

    /// Makes the program renew the lease, and update the entries of watched interfaces.
    pub(super) fn renew(&self) -> Result<(), Error> {
        self.update_interfaces(SweepRequest::RENEW)
    }

    fn update_interfaces(&self, kind: u32) -> Result<(), Error> {
        for (index, &entry) in self.watched.iter().enumerate() {
            self.list(index, entry);
        }
        self.run(SweepRequest { kind, due: self.watched.len() as u32, ..NOTHING })
    }

    /// Notes what the next run visits, as the number `index` of what is due.
    pub(super) fn list(&self, index: usize, due: u32) {
        if let Some(element) = self.due.get(index) {
            element.write(u64::from(due));
        }
    }

    /// Runs the program for one request. To the kernel that is a test run, which needs no packet.
    pub(super) fn run(&self, request: SweepRequest) -> Result<(), Error> {
        let what = "a run of the sweep";
        let program = self.program.as_ref().ok_or_else(|| refused(what, "it is not loaded"))?;
        // The program reads it, and writes to it, only while it is run here.
        self.request.first().store(&request);
        bpf::run(program).map_err(|error| refused(what, error))
    }

    /// The number of the sweep of the last run.
    pub(super) fn sweep(&self) -> u32 {
        self.request.first().at(field!(SweepRequest, sweep)).read()
    }

    /// How many candidates the last run found.
    pub(super) fn found(&self) -> u32 {
        self.request.first().at(field!(SweepRequest, found)).read()
    }
}

pub(super) const NOTHING: SweepRequest = SweepRequest {
    kind: SweepRequest::BEGIN,
    due: 0,
    sweep: 0,
    found: 0,
    threshold: Threshold::NONE,
    query_v4: QueryKey {
        client: Ipv4::ZERO,
        server: Ipv4::ZERO,
        client_port: 0,
        server_port: 0,
        id: 0,
        arm: Arm::FIRST,
    },
    query_v6: QueryKey {
        client: Ipv6::ZERO,
        server: Ipv6::ZERO,
        client_port: 0,
        server_port: 0,
        id: 0,
        arm: Arm::FIRST,
    },
};
