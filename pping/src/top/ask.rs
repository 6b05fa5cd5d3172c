//! The questions to a running pping.

use std::sync::Arc;

use super::client::{Client, Error};
use crate::view::{GroupDetail, GroupsAnswer, HistoryAnswer, Query, Summary};

/// What is wanted for a screen.
#[derive(Clone, Debug, Default)]
pub(super) struct Question {
    /// Which groups.
    pub(super) groups: Query,
    /// The id of the group whose past is shown.
    pub(super) past: Option<String>,
    /// Of which interface, method and side the past is shown.
    pub(super) history: Option<Query>,
}

/// What there is for a screen.
#[derive(Debug)]
pub(super) struct Answers {
    pub(super) summary: Summary,
    pub(super) groups: GroupsAnswer,
    /// The past of a group, if it was asked for and is still there.
    pub(super) past: Option<GroupDetail>,
    /// The past of an interface, if it was asked for.
    pub(super) history: Option<HistoryAnswer>,
}

/// All that a screen shows.
pub(super) async fn all(client: Arc<Client>, question: Question) -> Result<Answers, Error> {
    let summary = client.get("/api/v1/summary").await?;
    let groups = client.get(&format!("/api/v1/groups?{}", encoded(&question.groups)?)).await?;
    let past = match &question.past {
        None => None,
        Some(id) => match client.get(&format!("/api/v1/groups/{id}")).await {
            // There is none any more.
            Err(Error::TooOld(_)) => None,
            answer => Some(answer?),
        },
    };
    let history = match &question.history {
        None => None,
        Some(query) => Some(client.get(&format!("/api/v1/history?{}", encoded(query)?)).await?),
    };
    Ok(Answers { summary, groups, past, history })
}

fn encoded(query: &Query) -> Result<String, Error> {
    serde_urlencoded::to_string(query).map_err(|error| Error::Answer(error.to_string()))
}
