//! One node of a ceremony: asked for it, and followed to its end there.

use std::{future::Future, sync::Arc, time::Duration};

use theta_names::NodeId;
use theta_wire::{Bounded, v1};
use tokio::{sync::mpsc, time};
use tonic::Code;

use super::{AGAIN, reports::trim};
use crate::{Connection, Problem, connection::bounded, credentials::Enclosed};

/// The most fields of a report: an accusation is one.
pub(super) const MOST_FIELDS: usize = 4096;

type Report = Bounded<v1::CeremonyStatus, MOST_FIELDS>;

/// What the follower of one node reports.
pub(super) enum News {
    Status(Box<v1::CeremonyStatus>),
    /// The node will report nothing more.
    Ended(Problem),
    /// The node failed, and may come back.
    Trouble(Problem),
}

/// Asks one node and follows it to the end.
pub(super) struct Follower {
    pub(super) connection: Connection,
    pub(super) request: v1::HoldCeremonyRequest,
    pub(super) enclosed: Arc<Enclosed>,
    pub(super) patience: Duration,
    pub(super) watch_for: Duration,
    /// Of a report.
    pub(super) most_bytes: usize,
    pub(super) news: mpsc::Sender<(NodeId, News)>,
}

impl Follower {
    pub(super) async fn follow(self) {
        loop {
            let closed = self.news.closed();
            let turn = tokio::select! {
                turn = self.turn() => turn,
                () = closed => return,
            };
            match turn {
                // The ceremony is over at this node.
                Ok(()) => return,
                Err(problem) if is_final(&problem) => return self.tell(News::Ended(problem)).await,
                Err(problem) => self.tell(News::Trouble(problem)).await,
            }
            time::sleep(AGAIN).await;
        }
    }

    /// Asks for the ceremony, then watches it. A node that has the ceremony already reports its state.
    async fn turn(&self) -> Result<(), Problem> {
        let mut calls = self.connection.calls(self.most_bytes);
        let request = self.enclosed.request(&self.connection, self.request.clone(), self.patience);
        let ask = async { calls.one::<_, Report>("/theta.v1.ThresholdKeys/HoldCeremony", request).await };
        let status = self.read(Ok(self.within(ask).await?.into_inner())).await?;
        let (id, over) = (status.id.clone(), is_over(&status));
        self.tell(News::Status(Box::new(status))).await;
        if over {
            return Ok(());
        }
        let request = self.enclosed.request(&self.connection, v1::WatchCeremonyRequest { id }, self.watch_for);
        let mut calls = self.connection.calls(self.most_bytes);
        let watch = async { calls.stream::<_, Report>("/theta.v1.ThresholdKeys/WatchCeremony", request).await };
        let mut reports = self.within(watch).await?.into_inner();
        loop {
            let report = match reports.message().await.transpose() {
                Some(report) => report,
                None => return Err(Problem::Unreachable("it stopped telling how the ceremony stands".to_owned())),
            };
            let status = self.read(report).await?;
            let over = is_over(&status);
            self.tell(News::Status(Box::new(status))).await;
            if over {
                return Ok(());
            }
        }
    }

    /// A report as it came, without what nobody needs.
    async fn read(&self, report: Result<Report, tonic::Status>) -> Result<v1::CeremonyStatus, Problem> {
        match report.and_then(bounded::whole) {
            Ok(status) => Ok(trim(status)),
            Err(status) => Err(self.connection.problem(&status, self.watch_for).await),
        }
    }

    async fn within<T>(&self, call: impl Future<Output = Result<T, tonic::Status>>) -> Result<T, Problem> {
        match time::timeout(self.patience, call).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(status)) => Err(self.connection.problem(&status, self.patience).await),
            Err(_) => Err(Problem::Silent(self.patience)),
        }
    }

    async fn tell(&self, news: News) {
        // Sending fails only when the receiver is gone; nobody needs the report then.
        let _ = self.news.send((self.connection.node, news)).await;
    }
}

/// Whether asking the same node again is pointless.
fn is_final(problem: &Problem) -> bool {
    match problem {
        Problem::Denied { .. } => !problem.is_of_rates(),
        Problem::FalseAnswer(_) | Problem::TurnedAway { .. } | Problem::Unanswerable(_) => true,
        Problem::Refused { code, .. } => {
            !matches!(code, Code::Unavailable | Code::ResourceExhausted | Code::DeadlineExceeded)
        }
        Problem::Unreachable(_)
        | Problem::Silent(_)
        | Problem::NotReady(_)
        | Problem::OtherVersion(_)
        | Problem::KeyWithheld(_)
        | Problem::Unconfirmed(_) => false,
    }
}

/// Whether nothing more happens to the ceremony at the node.
pub(super) fn is_over(status: &v1::CeremonyStatus) -> bool {
    !matches!(status.state(), v1::CeremonyState::Running | v1::CeremonyState::Unspecified)
}
