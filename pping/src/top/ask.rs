//! What a screen asks, and the answers.

use super::client::{Client, Error};
use crate::view::{GroupDetail, GroupsAnswer, Query, Summary, View};

/// What is wanted for a screen.
#[derive(Clone, Debug, Default)]
pub(super) struct Question {
    /// Which groups.
    pub(super) groups: Query,
    /// The id of the group whose past is shown.
    pub(super) past: Option<String>,
}

/// What there is for a screen.
#[derive(Debug)]
pub(super) struct Answers {
    pub(super) summary: Summary,
    pub(super) groups: GroupsAnswer,
    /// The past of a group, if it was asked for and is still there.
    pub(super) past: Option<GroupDetail>,
}

impl Answers {
    /// Asks another pping.
    ///
    /// # Errors
    /// Why there is no answer.
    pub(super) async fn of_service(client: &Client, question: &Question) -> Result<Self, Error> {
        let summary = client.get("/api/v1/summary").await?;
        let query = serde_urlencoded::to_string(&question.groups)
            .map_err(|error| Error::Answer(error.to_string()))?;
        let groups = client.get(&format!("/api/v1/groups?{query}")).await?;
        let past = match &question.past {
            None => None,
            Some(id) => match client.get(&format!("/api/v1/groups/{id}")).await {
                // There is none any more.
                Err(Error::TooOld(_)) => None,
                answer => Some(answer?),
            },
        };
        Ok(Self { summary, groups, past })
    }

    /// Asks what this pping measures.
    pub(super) fn of_view(view: &View, question: &Question) -> Self {
        Self {
            summary: view.summary(),
            groups: view.groups(&question.groups),
            past: question.past.as_ref().and_then(|id| view.group(id)),
        }
    }
}
