//! Foreign tc programs beside pping's.

use std::thread;

use aya::{
    programs::{
        LinkOrder, ProgramInfo, SchedClassifier, TcAttachType,
        tc::{NlOptions, SchedClassifierLinkId, TcAttachOptions},
    },
    sys::{Stats, enable_stats},
};
use pping::kernel::{load, load_options::LoadOptions, loaded::Kernel};
use pping_bench_programs::BASELINE;
use pping_lab::Topology;

use super::monitor::{ok, wait_until};

/// The router's interface towards the server, where foreign programs are attached.
pub(super) const INTERFACE: &str = Topology::WAN;

/// A program that passes every packet on to the next one, attached until it is dropped.
pub(super) struct Foreign<'a> {
    topology: &'a Topology,
    kernel: Kernel,
    link: Option<SchedClassifierLinkId>,
}

impl Drop for Foreign<'_> {
    fn drop(&mut self) {
        let (topology, link) = (self.topology, self.link.take());
        let program = self.program();
        // The ifindex of a filter is valid only in the namespace of its interface.
        let detached = topology.router().enter(|| link.map(|link| program.detach(link)));
        assert!(matches!(detached, Ok(Some(Ok(())))) || thread::panicking(), "{detached:?}");
    }
}

impl<'a> Foreign<'a> {
    /// Attaches a program by a link, behind all attached programs.
    pub(super) fn by_link(topology: &'a Topology, direction: TcAttachType) -> Self {
        Self::attach(topology, direction, || TcAttachOptions::TcxOrder(LinkOrder::last()))
    }

    /// Attaches a program by a filter on the existing clsact qdisc.
    pub(super) fn by_filter(topology: &'a Topology, direction: TcAttachType, priority: u16) -> Self {
        Self::attach(topology, direction, || {
            TcAttachOptions::Netlink(NlOptions { priority, ..NlOptions::default() })
        })
    }

    fn attach(
        topology: &'a Topology,
        direction: TcAttachType,
        options: impl FnOnce() -> TcAttachOptions + Send,
    ) -> Self {
        let settings = LoadOptions { max_flows: 16, ..LoadOptions::DEFAULT };
        let kernel = load::open(BASELINE, &settings).unwrap();
        let mut foreign = Self { topology, kernel, link: None };
        let program = foreign.program();
        program.load().unwrap();
        let attach = || program.attach_with_options(INTERFACE, direction, options());
        foreign.link = Some(ok(topology.router().enter(attach)).unwrap());
        foreign
    }

    fn program(&mut self) -> &mut SchedClassifier {
        self.kernel.programs.program_mut("baseline_empty").unwrap().try_into().unwrap()
    }

    /// The kernel's id of the program.
    pub(super) fn program_id(&mut self) -> u32 {
        self.program().info().unwrap().id()
    }

    /// Asserts that all of these programs run on the packets of `send`.
    #[track_caller]
    pub(super) fn assert_run(all: &mut [Self], mut send: impl FnMut()) {
        let _counting = enable_stats(Stats::RunTime).unwrap();
        let count = |all: &mut [Self]| -> Vec<u64> {
            all.iter_mut().map(|it| it.program().info().unwrap().run_count()).collect()
        };
        let before = count(all);
        // Another test may switch the statistics off meanwhile, so try again.
        wait_until("each of them ran", || {
            send();
            count(all).iter().zip(&before).all(|(after, before)| after > before)
        });
    }
}

/// The ids of the programs attached by links, in the order in which they run.
pub(super) fn order(topology: &Topology, direction: TcAttachType) -> Vec<u32> {
    let query =
        || SchedClassifier::query_tcx(INTERFACE, direction).unwrap().1.iter().map(ProgramInfo::id).collect();
    ok(topology.router().enter(query))
}
