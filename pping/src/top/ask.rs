//! The questions of a screen, and the answers.

use serde::Serialize;

use crate::{
    client::{Client, Error},
    groups::NETWORK,
    recent::{
        GroupDetail, GroupsAnswer, HistoryAnswer, Query, RecentHistory, SeriesQuery, Summary, WorstAnswer,
        WorstQuery,
    },
};

/// What a screen needs.
#[derive(Clone, Debug, Default)]
pub(super) struct Question {
    /// Which groups.
    pub(super) groups: Query,
    /// The id of the group whose past is shown.
    pub(super) past: Option<String>,
    /// How the worst are ranked, if they are shown.
    pub(super) worst: Option<WorstQuery>,
    /// The interface, method and side whose past is shown.
    pub(super) history: Option<SeriesQuery>,
}

impl Question {
    /// Returns the query for groups: with both sides of each in one row, if the pping of this summary tells sides apart. An older
    /// pping knows no other view.
    pub(super) fn groups_for(&self, summary: &Summary) -> Query {
        let mut query = self.groups.clone();
        // A reload may have removed the level since.
        let is_there = match &query.by {
            Some(level) => has_level(summary, level),
            None => !summary.levels.is_empty(),
        };
        if !is_there {
            (query.by, query.under) = (None, None);
        }
        query.fitted(summary.sides)
    }
}

/// Whether the pping of a summary has sums of a level.
pub(super) fn has_level(summary: &Summary, level: &str) -> bool {
    summary.levels.iter().any(|known| **known == *level) || summary.networks && level == NETWORK
}

/// The answers for a screen.
#[derive(Debug)]
pub(super) struct Answers {
    pub(super) summary: Summary,
    pub(super) groups: GroupsAnswer,
    /// The past of a group, if it was asked for and is still there.
    pub(super) past: Option<GroupDetail>,
    /// The worst, if they were asked for.
    pub(super) worst: Option<WorstAnswer>,
    /// The past of an interface, if it was asked for.
    pub(super) history: Option<HistoryAnswer>,
}

impl Answers {
    /// Asks another pping.
    ///
    /// # Errors
    /// If there is no answer.
    pub(super) async fn of_service(client: &Client, question: &Question) -> Result<Self, Error> {
        let summary: Summary = client.get("/api/v1/summary").await?;
        let groups = question.groups_for(&summary);
        let groups = match client.get(&format!("/api/v1/groups?{}", encoded(&groups)?)).await {
            // The node has neither members nor measurements any more.
            Err(Error::TooOld(_)) if groups.under.is_some() => GroupsAnswer::none(&summary),
            answer => answer?,
        };
        let past = match &question.past {
            None => None,
            Some(id) => match client.get(&format!("/api/v1/groups/{id}")).await {
                // The group has expired.
                Err(Error::TooOld(_)) => None,
                answer => Some(answer?),
            },
        };
        let worst = match &question.worst {
            None => None,
            Some(query) => match client.get(&format!("/api/v1/worst?{}", encoded(query)?)).await {
                Err(Error::TooOld(_)) => None,
                answer => Some(answer?),
            },
        };
        let history = match &question.history {
            None => None,
            Some(query) => Some(client.get(&format!("/api/v1/history?{}", encoded(query)?)).await?),
        };
        Ok(Self { summary, groups, past, worst, history })
    }

    /// Asks what this pping measures.
    pub(super) fn of_recent(recent: &RecentHistory, question: &Question) -> Self {
        let summary = recent.summary();
        Self {
            groups: recent.groups(&question.groups_for(&summary)),
            summary,
            past: question.past.as_ref().and_then(|id| recent.group(id)),
            worst: question.worst.as_ref().map(|query| recent.worst(query)),
            history: question.history.as_ref().map(|query| recent.history(query)),
        }
    }
}

fn encoded(query: &impl Serialize) -> Result<String, Error> {
    serde_urlencoded::to_string(query).map_err(|error| Error::Answer(error.to_string()))
}
