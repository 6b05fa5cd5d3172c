//! Interfaces that come and go.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use super::Agent;
use crate::{
    Error,
    kernel::{
        self,
        attach::{self, AttachPoint, AttachPoints, Attachment, Owner},
        counters::Watched,
        interfaces::{self, Change, Link, Netlink},
        load::Kernel,
        pins::Pins,
        selection::Wanted,
    },
};

/// How long until attaching is tried again where it failed, should the kernel have nothing to say before.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// What is watched, and what is to be.
pub(super) struct Watching {
    wanted: Wanted,
    /// Where to attach at ingress, in order of preference.
    ingress: &'static [AttachPoint],
    owner: Owner,
    /// Each interface that is watched, or was until it went away.
    pub(super) watched: Vec<Watched>,
    /// What keeps programs attached, by ifindex.
    attached: BTreeMap<u32, Held>,
    /// Interfaces that could not be attached to, which was said.
    failed: BTreeSet<u32>,
    tried: Instant,
}

struct Held {
    name: String,
    attachment: Attachment,
}

impl Watching {
    pub(super) fn new(wanted: Wanted, ingress: &'static [AttachPoint]) -> Self {
        Self {
            wanted,
            ingress,
            owner: Owner::default(),
            watched: Vec::new(),
            attached: BTreeMap::new(),
            failed: BTreeSet::new(),
            tried: Instant::now(),
        }
    }

    /// Attaches to what is there. What was asked for by name has to be of a kind that can be watched.
    ///
    /// # Errors
    /// What keeps an interface from being watched.
    pub(super) fn begin(
        &mut self,
        kernel: &mut Kernel,
        pins: Option<&Pins>,
        links: &[Link],
    ) -> Result<(), kernel::Error> {
        for link in links {
            if !self.wanted.has(&link.name) {
                continue;
            }
            match self.attach(kernel, pins, link) {
                Err(error) if self.wanted.has_name(&link.name) => return Err(error),
                Err(error) => self.note_failure(link, &error),
                Ok(()) => {}
            }
        }
        for name in self.wanted.missing(links) {
            tracing::warn!("{name}: there is no such interface yet; waiting for it");
        }
        if self.attached.is_empty() {
            tracing::warn!("nothing to watch yet; waiting for interfaces");
        }
        // Interfaces of a run before this one that are away at present: their counters are still told.
        let is_xdp = self.ingress.iter().all(|it| it.is_xdp());
        let ingress = if is_xdp { AttachPoint::XdpNative } else { AttachPoint::Tcx };
        for (id, name) in kernel.interface_ids.names() {
            if self.wanted.has(name) && self.watched.iter().all(|it| it.id != id) {
                let attach_points = AttachPoints { ingress, egress: AttachPoint::Tcx };
                self.watched.push(Watched { name: Arc::clone(name), id, attach_points, is_up: false });
            }
        }
        // What a run before this one watched, and this one does not.
        kernel.interface_ids.clear_others(|ifindex| self.attached.contains_key(&ifindex))?;
        let held = self.attached.values().flat_map(|held| held.attachment.pinned().map(PathBuf::from));
        pins.map_or(Ok(()), |pins| pins.remove_others(&held.collect()))
    }

    /// Follows what has changed. Returns what cannot be attached to, as it seems.
    pub(super) fn follow(
        &mut self,
        kernel: &mut Kernel,
        pins: Option<&Pins>,
        links: &[Link],
    ) -> Result<Vec<(Link, kernel::Error)>, kernel::Error> {
        self.tried = Instant::now();
        let is_there =
            |ifindex: u32, name: &str| links.iter().any(|link| link.ifindex == ifindex && link.name == name);
        let gone: Vec<u32> = self
            .attached
            .iter()
            .filter(|(ifindex, held)| !is_there(**ifindex, &held.name) || !self.wanted.has(&held.name))
            .map(|(&ifindex, _)| ifindex)
            .collect();
        for ifindex in gone {
            self.detach(kernel, ifindex)?;
        }
        self.failed.retain(|ifindex| links.iter().any(|link| link.ifindex == *ifindex));
        let mut failures = Vec::new();
        for link in links {
            if !self.wanted.has(&link.name) || self.attached.contains_key(&link.ifindex) {
                continue;
            }
            match self.attach(kernel, pins, link) {
                Ok(()) => {}
                Err(error @ (kernel::Error::Map(_) | kernel::Error::Io(_))) => return Err(error),
                Err(error) => failures.push((link.clone(), error)),
            }
        }
        Ok(failures)
    }

    /// Whether it is time to try again what failed.
    pub(super) fn is_due(&self) -> bool {
        !self.failed.is_empty() && self.tried.elapsed() >= RETRY_INTERVAL
    }

    /// Watches others from now on.
    ///
    /// # Errors
    /// What was asked for by name and is not there; then nothing changes.
    pub(super) fn want(
        &mut self,
        wanted: Wanted,
        links: &[Link],
        may_wait: bool,
    ) -> Result<(), kernel::Error> {
        let before = std::mem::replace(&mut self.wanted, wanted);
        // One that went away in the meantime is waited for.
        let missing = self.wanted.missing(links).find(|name| !before.has_name(name)).map(str::to_owned);
        match missing {
            Some(name) if !may_wait => {
                self.wanted = before;
                Err(Wanted::unknown(&name, links))
            }
            _ => Ok(()),
        }
    }

    /// Detaches from all interfaces. What is pinned stays.
    pub(super) fn end(&mut self) {
        self.attached.clear();
    }

    fn attach(&mut self, kernel: &mut Kernel, pins: Option<&Pins>, link: &Link) -> Result<(), kernel::Error> {
        let id = link.register(kernel)?;
        let attachment = match attach::attach(kernel, link, self.ingress, pins, &mut self.owner) {
            Ok(attachment) => attachment,
            Err(error) => {
                kernel.interface_ids.leave(link.ifindex)?;
                return Err(error);
            }
        };
        self.failed.remove(&link.ifindex);
        // Another that had the place is long gone.
        self.watched.retain(|it| it.id != id);
        let attach_points = attachment.attach_points;
        self.watched.push(Watched { name: link.name.as_str().into(), id, attach_points, is_up: true });
        self.attached.insert(link.ifindex, Held { name: link.name.clone(), attachment });
        Ok(())
    }

    fn detach(&mut self, kernel: &mut Kernel, ifindex: u32) -> Result<(), kernel::Error> {
        let Some(Held { name, attachment }) = self.attached.remove(&ifindex) else { return Ok(()) };
        attachment.detach()?;
        kernel.interface_ids.leave(ifindex)?;
        for watched in self.watched.iter_mut().filter(|it| *it.name == *name) {
            watched.is_up = false;
        }
        tracing::warn!(
            "{name} (ifindex {ifindex}) is not watched any more: it is gone, renamed or not wanted"
        );
        Ok(())
    }

    /// Says what failed, once for each interface.
    fn note_failure(&mut self, link: &Link, error: &kernel::Error) {
        if self.failed.insert(link.ifindex) {
            tracing::warn!("{}: not watched: {error}", link.name);
        }
    }
}

impl Agent {
    /// Watches the interfaces that are wanted and there, and no others.
    pub(super) async fn watch_wanted(&mut self, netlink: &Netlink) -> Result<(), Error> {
        let links = netlink.links().await?;
        let Self { watching, kernel, pins, .. } = self;
        let failures = watching.follow(kernel, pins.as_ref(), &links)?;
        if failures.is_empty() {
            return Ok(());
        }
        // Some may have gone before they could be attached to, which is nothing to speak of.
        let links = netlink.links().await?;
        for (link, error) in failures.iter().filter(|(link, _)| links.contains(link)) {
            watching.note_failure(link, error);
        }
        Ok(())
    }

    /// Follows a change in the kernel's interfaces and addresses.
    pub(super) async fn follow(&mut self, netlink: &Netlink, change: Change) -> Result<(), Error> {
        if change.links {
            let before = self.status();
            self.watch_wanted(netlink).await?;
            // Whoever looks is told at once, and not with the next second.
            self.count()?;
            let status = self.status();
            if status != before {
                self.notify.status(&status);
            }
        }
        if change.addresses {
            let addresses = netlink.addresses().await?;
            interfaces::set_local_addresses(&mut self.kernel, &mut self.local, addresses)?;
        }
        Ok(())
    }
}
