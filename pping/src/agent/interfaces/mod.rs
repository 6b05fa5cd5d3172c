//! Interfaces that come and go.

mod descriptors;
mod filters;
mod joined;

use std::{
    collections::{BTreeMap, BTreeSet},
    iter::repeat,
    path::PathBuf,
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crate::{
    kernel::{
        self,
        attach::{self, Attachment, FilterOwner, Wanted},
        attach_point::{AttachPoint, AttachPoints},
        counters::Watched,
        interfaces::Link,
        load,
        loaded::Kernel,
        netlink::Listing,
        pins::Pins,
        promiscuous::Promiscuous,
        selection::Selection,
    },
    snapshot::Place,
};

/// The interval in which failed attachments are tried again, unless an interface changes before.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// How long interfaces are attached to, one after the other, before other work gets its turn. Each takes some 30 ms, and
/// thousands may come at once.
pub(super) const TURN: Duration = Duration::from_millis(200);

/// How long a start attaches to interfaces that match a pattern. The others come after it.
const FIRST_TURN: Duration = Duration::from_secs(5);

/// The interfaces that are watched, and those that should be.
pub(super) struct Interfaces {
    selection: Selection,
    /// What to attach to.
    wanted: Wanted,
    /// Keeps the interfaces in promiscuous mode, if they are mirror ports.
    promiscuous: Option<Promiscuous>,
    owner: FilterOwner,
    /// Each interface that is watched, or was until it went away.
    pub(super) watched: Vec<Watched>,
    /// Joined interfaces for which there is no id, so that they count apart.
    without_id: BTreeSet<Arc<str>>,
    /// Attached interfaces, by ifindex.
    attached: BTreeMap<u32, Attached>,
    /// Interfaces whose failure to attach was logged, by ifindex: when that was tried last.
    failed: BTreeMap<u32, Instant>,
    tried: Instant,
    /// Whether the interfaces have to be listed again, because the kernel did not list all of them.
    is_list_due: bool,
    /// Whether interfaces are left to be attached to, because the time was up.
    pub(super) has_more: bool,
    /// Whether what the previous run left was removed, with pins.
    is_tidy: bool,
    /// The present or last look for filters. It has its own thread, because the kernel does not answer while any
    /// interface is being changed. Its result is the interfaces from which another program removed filters, by ifindex.
    look: Option<JoinHandle<BTreeSet<u32>>>,
    /// When that began.
    looked: Instant,
}

struct Attached {
    link: Link,
    attachment: Attachment,
    /// The name of the joined interfaces that it is one of.
    joined: Option<Arc<str>>,
}

/// Why an interface is not watched by its name any more.
enum Gone {
    /// It is not watched at all, for this reason.
    ForNow(String),
    /// It has this name now, and is watched by that.
    Renamed(String),
}

impl Interfaces {
    pub(super) fn new(selection: Selection, wanted: Wanted, promiscuous: Option<Promiscuous>) -> Self {
        Self {
            selection,
            wanted,
            promiscuous,
            owner: FilterOwner::default(),
            watched: Vec::new(),
            without_id: BTreeSet::new(),
            attached: BTreeMap::new(),
            failed: BTreeMap::new(),
            tried: Instant::now(),
            is_list_due: false,
            has_more: false,
            is_tidy: false,
            look: None,
            looked: Instant::now(),
        }
    }

    /// Returns the names of watched interfaces that are up, each of joined ones by itself.
    pub(super) fn up(&self) -> impl Iterator<Item = &str> {
        self.watched.iter().filter(|it| it.is_up && it.place != Place::Joined).map(|it| &*it.name)
    }

    /// Returns the names of the interfaces that should be there: those that are selected by a full name.
    pub(super) fn expected(&self, listing: &Listing<Link>) -> BTreeSet<String> {
        self.selection.expected(&listing.found).map(ToOwned::to_owned).collect()
    }

    /// Attaches to the interfaces that exist at the start: to those that were named, and to as many that match a pattern as
    /// there is time for.
    ///
    /// # Errors
    /// If an interface that was named cannot be watched. A failure of one that only matches a pattern is logged.
    pub(super) fn attach_first(
        &mut self,
        kernel: &mut Kernel,
        pins: Option<&Pins>,
        links: &[Link],
    ) -> Result<(), kernel::Error> {
        descriptors::make_room_for_links(kernel.options.max_interfaces);
        self.register_joined(kernel)?;
        let selected = links.iter().filter(|link| self.selection.includes(link));
        let (named, matched): (Vec<_>, Vec<_>) = selected.partition(|link| self.selection.names(link));
        for link in named {
            if let Err(error) = self.attach(kernel, pins, link) {
                if self.attached.is_empty()
                    && let Some(pins) = pins
                {
                    // Otherwise each failed start would leave its program arrays pinned.
                    load::unpin_stages(&kernel.programs, pins)?;
                }
                return Err(error);
            }
        }
        // What the previous run attached to is taken over at once, before this run counts.
        let linked = pins.map(Pins::linked).transpose()?.unwrap_or_default();
        let (linked, new): (Vec<_>, Vec<_>) =
            matched.into_iter().partition(|link| linked.contains(&link.ifindex));
        let began = Instant::now();
        for (link, is_new) in linked.into_iter().zip(repeat(false)).chain(new.into_iter().zip(repeat(true))) {
            self.has_more = is_new && began.elapsed() > FIRST_TURN;
            if self.has_more {
                break;
            }
            if let Err(error) = self.attach(kernel, pins, link) {
                self.log_failure(link, &error);
            }
        }
        for name in self.selection.missing(links) {
            tracing::warn!("{name}: there is no such interface yet; waiting for it");
        }
        if self.attached.is_empty() {
            tracing::warn!("nothing to watch yet; waiting for interfaces");
        }
        self.tidy(kernel, pins)
    }

    /// Removes what only the previous run watched, once all interfaces that exist are watched by this one.
    fn tidy(&mut self, kernel: &mut Kernel, pins: Option<&Pins>) -> Result<(), kernel::Error> {
        if self.has_more || self.is_tidy {
            return Ok(());
        }
        self.is_tidy = true;
        // The counters of interfaces that the previous run watched and that are gone are still reported.
        let is_xdp = self.wanted.ingress.iter().all(|it| it.is_xdp());
        let ingress = if is_xdp { AttachPoint::XdpNative } else { AttachPoint::Tcx };
        for (id, name) in kernel.interface_ids.names() {
            if self.selection.includes_name(name) && self.watched.iter().all(|it| it.id != id) {
                let egress = self.wanted.has_egress.then_some(AttachPoint::Tcx);
                let attach_points = Some(AttachPoints { ingress, egress });
                let place = Place::Alone;
                self.watched.push(Watched { name: Arc::clone(name), id, attach_points, is_up: false, place });
            }
        }
        let Some(pins) = pins else { return Ok(()) };
        kernel.interface_ids.clear_others(|ifindex| self.attached.contains_key(&ifindex));
        let links = self.attached.values().flat_map(|it| it.attachment.pinned().map(PathBuf::from));
        pins.remove_others(&links.chain(load::pinned_stages(&kernel.programs, pins)?).collect())
    }

    /// Attaches to interfaces that came, and detaches from those that went. Returns those that it failed to attach to.
    pub(super) fn update(
        &mut self,
        kernel: &mut Kernel,
        pins: Option<&Pins>,
        Listing { found: links, is_complete }: &Listing<Link>,
    ) -> Result<Vec<(Link, kernel::Error)>, kernel::Error> {
        self.tried = Instant::now();
        let by_ifindex: BTreeMap<u32, &Link> = links.iter().map(|link| (link.ifindex, link)).collect();
        let reasons = self.attached.iter().filter_map(|(&ifindex, attached)| {
            let reason = match by_ifindex.get(&ifindex) {
                // An incomplete list may lack interfaces that exist.
                None if !is_complete => return None,
                None => Gone::ForNow("it is gone".to_owned()),
                Some(link) if link.name != attached.link.name && self.selection.includes(link) => {
                    Gone::Renamed(link.name.clone())
                }
                Some(link) if link.name != attached.link.name => {
                    Gone::ForNow(format!("it is {} now", link.name))
                }
                Some(link) if !self.selection.includes(link) => {
                    Gone::ForNow("it is no longer selected".to_owned())
                }
                // An interface that was deleted and made again may have the same name and number.
                Some(_) if attached.attachment.is_gone() => Gone::ForNow("it was made again".to_owned()),
                Some(_) => return None,
            };
            Some((ifindex, reason))
        });
        for (ifindex, reason) in reasons.collect::<Vec<_>>() {
            self.detach(kernel, ifindex, &reason);
        }
        self.join(kernel)?;
        self.failed.retain(|ifindex, _| by_ifindex.contains_key(ifindex));
        let mut failures = Vec::new();
        let began = Instant::now();
        self.has_more = false;
        let is_wanted =
            |link: &&Link| self.selection.includes(link) && !self.attached.contains_key(&link.ifindex);
        let mut wanted: Vec<_> = links.iter().filter(is_wanted).collect();
        // New ones first. The others take turns, and wait for the next retry if the time is up.
        wanted.sort_by_key(|link| self.failed.get(&link.ifindex).copied());
        for link in wanted {
            if began.elapsed() > TURN {
                self.has_more = !self.failed.contains_key(&link.ifindex);
                break;
            }
            let was_watched = self.watched.iter().any(|it| *it.name == *link.name && !it.is_up);
            match self.attach(kernel, pins, link) {
                Ok(()) if was_watched => {
                    tracing::warn!("{} (ifindex {}) is watched again", link.name, link.ifindex);
                }
                Ok(()) => tracing::info!("{} (ifindex {}) is watched", link.name, link.ifindex),
                Err(error @ kernel::Error::Map(_)) => return Err(error),
                Err(error) => {
                    self.failed.entry(link.ifindex).and_modify(|tried| *tried = Instant::now());
                    failures.push((link.clone(), error));
                }
            }
        }
        self.tidy(kernel, pins)?;
        Ok(failures)
    }

    /// Takes the kernel's list of interfaces, or its refusal to list them. Logs the first of refusals in a row.
    pub(super) fn take_list(
        &mut self,
        listed: Result<Listing<Link>, kernel::Error>,
    ) -> Option<Listing<Link>> {
        match listed {
            Ok(listing) => {
                self.is_list_due = !listing.is_complete;
                Some(listing)
            }
            Err(error) => {
                if !self.is_list_due {
                    tracing::warn!("{error}; trying again every second");
                }
                (self.is_list_due, self.has_more) = (true, false);
                None
            }
        }
    }

    /// Whether it is time to try again where attaching failed.
    pub(super) fn is_retry_due(&self) -> bool {
        self.is_list_due || !self.failed.is_empty() && self.tried.elapsed() >= RETRY_INTERVAL
    }

    /// Selects other interfaces, for [`Interfaces::update`] to attach to.
    ///
    /// # Errors
    /// If a named interface does not exist, unless `may_wait`. Then nothing changes.
    pub(super) fn select(
        &mut self,
        selection: Selection,
        links: &[Link],
        may_wait: bool,
    ) -> Result<(), kernel::Error> {
        // An interface that was selected before, and went away since, is waited for.
        let missing = selection.missing(links).find(|name| !self.selection.names_name(name));
        if let Some(name) = missing.filter(|_| !may_wait) {
            return Err(Selection::unknown(name, links));
        }
        self.selection = selection;
        Ok(())
    }

    /// Detaches from all interfaces. What is pinned stays.
    pub(super) fn detach_all(&mut self) {
        self.attached.clear();
    }

    fn attach(&mut self, kernel: &mut Kernel, pins: Option<&Pins>, link: &Link) -> Result<(), kernel::Error> {
        let joined = self.selection.joined(link).filter(|name| !self.without_id.contains(*name)).cloned();
        if let Some(joined) = &joined {
            self.check_link_type(link, joined)?;
        }
        let joined_id = joined.as_ref().and_then(|name| kernel.interface_ids.of(name));
        let id = link.register_as(kernel, joined_id)?;
        let attachment = match attach::attach(kernel, link, self.wanted, pins, &mut self.owner) {
            Ok(attachment) => attachment,
            Err(error) => {
                kernel.interface_ids.remove(link.ifindex);
                return Err(error);
            }
        };
        if let Some(promiscuous) = &self.promiscuous
            && let Err(error) = promiscuous.hold(link.ifindex)
        {
            tracing::warn!(
                "{}: cannot be put into promiscuous mode, so it may take only frames that are addressed to it: {error}",
                link.name
            );
        }
        self.failed.remove(&link.ifindex);
        // Another interface may have had the id before.
        self.watched.retain(|it| it.id != id);
        let attach_points = Some(attachment.attach_points);
        let place = joined.clone().map_or(Place::Alone, Place::OneOf);
        self.watched.push(Watched { name: link.name.as_str().into(), id, attach_points, is_up: true, place });
        self.attached.insert(link.ifindex, Attached { link: link.clone(), attachment, joined });
        Ok(())
    }

    fn detach(&mut self, kernel: &mut Kernel, ifindex: u32, reason: &Gone) {
        let Some(Attached { link, attachment, .. }) = self.attached.remove(&ifindex) else { return };
        if let Err(error) = attachment.detach() {
            tracing::warn!("{}: {error}", link.name);
        }
        if let Some(promiscuous) = &self.promiscuous {
            promiscuous.release(ifindex);
        }
        kernel.interface_ids.remove(ifindex);
        for watched in self.watched.iter_mut().filter(|it| *it.name == *link.name) {
            watched.is_up = false;
        }
        match reason {
            Gone::ForNow(reason) => {
                tracing::warn!("{} (ifindex {ifindex}) is not watched any more: {reason}", link.name);
            }
            Gone::Renamed(name) => {
                tracing::info!("{} (ifindex {ifindex}) is {name} now, and watched by that name", link.name);
            }
        }
    }

    /// Logs a failure, once for each interface.
    pub(super) fn log_failure(&mut self, link: &Link, error: &kernel::Error) {
        if self.failed.insert(link.ifindex, Instant::now()).is_none() {
            tracing::warn!("{}: not watched: {error}", link.name);
        }
    }
}
