//! Echo requests and their replies.

use super::{Found, Model, Request, Requests};
use crate::{
    limits::{PENDING_LIFETIME, PENDING_PER_DIRECTION},
    method::Method,
};

impl Model {
    /// Removes a pending request.
    pub(super) fn take_request(&mut self, sender: usize, number: (u16, u16)) -> Option<Request> {
        let is_it = |request: &mut Request| (request.sender, request.number) == (sender, number);
        self.latest.iter_mut().chain(&mut self.kept).find_map(|request| request.take_if(is_it))
    }

    /// Takes the sample of a request, unless its distance from the request of the latest sample is too short.
    pub(super) fn answer(&mut self, Request { sender, number, since }: Request, now: u64, found: &mut Found) {
        let end = &mut self.ends[sender];
        let may_give = end
            .recorded_at
            .is_none_or(|sampled_at| end.is_apart(&self.rules, since.min(sampled_at), since.max(sampled_at)));
        if since <= now && may_give {
            end.recorded_at = end.recorded_at.max(Some(since));
            end.sample(Method::IcmpEcho, number.0.into(), since, now, found);
        }
    }

    /// Records an echo request among the latest, unless a request with the same number and data is pending: then neither waits, unless
    /// the second is a copy. The oldest of the latest may have to make room, and is then kept, if there is room for it.
    pub(super) fn request(&mut self, sender: usize, number: (u16, u16), now: u64, found: &mut Found) {
        let mut waiting = self.latest.iter().chain(&self.kept).flatten();
        if let Some(before) = waiting.find(|request| (request.sender, request.number) == (sender, number)) {
            if before.since <= now.saturating_sub(self.rules.copy_within) {
                self.take_request(sender, number);
                found.not_awaited += 1;
            }
            return;
        }
        found.asked += 1;
        let oldest = |requests: &Requests| {
            let since = |position: &usize| requests[*position].map_or(0, |request| request.since);
            (0..PENDING_PER_DIRECTION).min_by_key(since).unwrap_or(0)
        };
        let place = oldest(&self.latest);
        let Some(pushed) = self.latest[place].replace(Request { sender, number, since: now }) else {
            return;
        };
        let sampled_at = [self.ends[0].recorded_at, self.ends[1].recorded_at];
        let gives_way = |request: &Request| {
            sampled_at[request.sender].is_some_and(|at| request.since < at)
                || now.saturating_sub(request.since) >= PENDING_LIFETIME
        };
        if gives_way(&pushed) {
            found.gave_way += 1;
            return;
        }
        let newest = self.kept.iter().flatten().map(|request| request.since).max();
        let before = newest.max(sampled_at[pushed.sender]);
        if before.is_some_and(|before| !self.ends[sender].is_apart(&self.rules, before, pushed.since)) {
            found.not_awaited += 1;
            return;
        }
        let place = oldest(&self.kept);
        if let Some(kept) = &self.kept[place] {
            if !gives_way(kept) {
                found.pending_full += 1;
                found.not_awaited += 1;
                return;
            }
            found.gave_way += 1;
        }
        self.kept[place] = Some(pushed);
    }
}
