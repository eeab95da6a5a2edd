//! Requests of 80 bytes whose bodies never come. They used to hold a place for ever.

use std::time::Duration;

use tokio::time;

use crate::{
    attack::{Attack, Committing, Effort, Field, Happened, Shape, Trouble, Who},
    door::{Http, Shown, Windows, headers},
};

/// See the module's first line.
pub(super) const ATTACK: Attack = Attack {
    name: "headers-only",
    promise: "A stranger does not stop the API: known clients have places that strangers cannot take",
    who: Who::Stranger,
    short: true,
    shape: Shape::USUAL,
    commit: committing,
};

/// More requests than a node has places.
const REQUESTS: usize = 1_100;
/// Roughly the bytes of one request's headers.
const HEADER_BYTES: usize = 80;

fn committing(field: &mut Field) -> Committing<'_> {
    Box::pin(commit(field))
}

async fn commit(field: &mut Field) -> Result<Happened, Trouble> {
    let mut effort = Effort::default();
    let mut held = Vec::new();
    let mut connections = Vec::new();
    for node in field.group().nodes() {
        let mut http = Http::open(node, &Shown::Nothing, Windows::default()).await?;
        effort.connections += 1;
        for _ in 0..REQUESTS {
            // The node has bounded the streams of this connection, so the attack ends here.
            let Ok(Ok(ready)) = time::timeout(Duration::from_millis(200), http.requests.clone().ready()).await else {
                break;
            };
            http.requests = ready;
            let Ok((answer, body)) = http.requests.send_request(headers("/theta.v1.ThresholdProtocol/Sign")?, false)
            else {
                break;
            };
            effort.bytes += HEADER_BYTES;
            held.push((answer, body));
        }
        connections.push(http);
    }
    time::sleep(field.size(Duration::from_secs(20), Duration::from_secs(5))).await;
    let over = connections.iter().filter(|http| http.is_over()).count();
    Ok(Happened {
        kept: true,
        words: format!("{} requests without bodies were sent; the nodes ended {over} of the connections", held.len()),
        effort,
    })
}
