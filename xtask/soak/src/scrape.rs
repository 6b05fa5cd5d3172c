//! Scrapes each agent once a second, plain and compressed in turn.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use anyhow::Result;

use super::{
    agent::Agent,
    findings::Findings,
    load::rest,
    metrics::{Monotone, Page},
};

/// The results of one agent's scrapes.
#[derive(Debug, Default)]
pub(super) struct Scraper {
    pub(super) scrapes: AtomicU64,
    /// Scrapes without an answer. Each is a finding, unless the agent was not there.
    pub(super) unanswered: AtomicU64,
    monotone: Mutex<Monotone>,
}

impl Scraper {
    /// Scrapes until the soak is over.
    pub(super) fn run(&self, agent: &Agent<'_>, findings: &Findings) -> Result<()> {
        let mut is_compressed = false;
        while !findings.is_over() {
            self.scrape(agent, is_compressed, findings)?;
            is_compressed = !is_compressed;
            rest(findings, Duration::from_secs(1));
        }
        Ok(())
    }

    /// Scrapes once.
    pub(super) fn scrape(
        &self,
        agent: &Agent<'_>,
        is_compressed: bool,
        findings: &Findings,
    ) -> Result<Option<Page>> {
        let generation = agent.generation();
        let answer = agent.scrape(is_compressed)?;
        let was_there = agent.has_run_since(generation);
        self.scrapes.fetch_add(1, Relaxed);
        let Some(text) = answer else {
            self.unanswered.fetch_add(1, Relaxed);
            if was_there {
                findings.note(format!("{} did not answer a scrape", agent.name));
            }
            return Ok(None);
        };
        let page = Page::read(&text);
        for setback in self.monotone.lock().unwrap_or_else(PoisonError::into_inner).follow(&page) {
            findings.note(format!("{}: {setback}", agent.name));
        }
        Ok(Some(page))
    }

    /// Returns how many counters it has seen.
    pub(super) fn counters(&self) -> usize {
        self.monotone.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
