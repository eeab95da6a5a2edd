//! A member keeps what clients with tokens send it, and shows it to the others.

use std::{
    collections::BTreeSet,
    fs,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use theta_client::{Client, ClientOptions, Credentials, Token};
use theta_network::{
    Fingerprint, Identity,
    group::GroupNode,
    tls::{self, Admits},
};
use theta_wire::v1::{self, Wait};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;
use tonic::{Code, Request, Status};

use crate::{
    ask::Asked,
    attack::{Attack, Effort, Field, Happened, Shape, Trouble, Who},
    group::{Group, SIGNER},
    member::TAKEN,
};

/// See the module's first line.
pub(super) const ATTACK: Attack = Attack {
    name: "token-thief",
    promise: "What a client with a token sends a member is of no use at any other node",
    who: Who::Member,
    short: true,
    shape: Shape::USUAL,
    commit: |field| Box::pin(commit(field)),
};

const RULE: &str = "[[rule]]\nname = \"robot-signs\"\neffect = \"allow\"\nclients = [\"robot\"]\nkeys = [\"*\"]\noperations = [\"sign\"]\n";
const PATIENCE: Duration = Duration::from_secs(10);

/// Accepts every caller.
#[derive(Debug)]
struct Anybody;

impl Admits for Anybody {
    fn admits(&self, _: &Fingerprint) -> bool {
        true
    }

    fn admits_anonymous(&self) -> bool {
        true
    }
}

/// The member's door for clients: it keeps the headers of credentials, and answers that it has no time.
struct Thief {
    stolen: Arc<Mutex<BTreeSet<String>>>,
    serving: JoinHandle<()>,
}

impl Drop for Thief {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Thief {
    async fn serve(identity: &Identity, address: &str) -> Result<Self, Trouble> {
        let acceptor = tls::server_config_admitting(identity, Arc::new(Anybody), &[b"h2"]);
        let acceptor = TlsAcceptor::from(acceptor.map_err(|error| Trouble::new(error.to_string()))?);
        let address: SocketAddr = address.parse().map_err(|_| Trouble::new("a client address is none"))?;
        let listener = TcpListener::bind(address).await?;
        let stolen = Arc::new(Mutex::new(BTreeSet::new()));
        let kept = Arc::clone(&stolen);
        let serving = tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                tokio::spawn(keep(tcp, acceptor.clone(), Arc::clone(&kept)));
            }
        });
        Ok(Self { stolen, serving })
    }

    fn stolen(&self) -> BTreeSet<String> {
        self.stolen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Keeps the credentials of all requests of one connection.
async fn keep(tcp: TcpStream, acceptor: TlsAcceptor, kept: Arc<Mutex<BTreeSet<String>>>) {
    let Ok(stream) = acceptor.accept(tcp).await else { return };
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        if let Some(Ok(header)) = request.headers().get("authorization").map(|header| header.to_str()) {
            kept.lock().unwrap_or_else(PoisonError::into_inner).insert(header.to_owned());
        }
        let busy = http::Response::builder().header("content-type", "application/grpc").header("grpc-status", "14");
        if let Ok(busy) = busy.body(()) {
            // A client that has gone away hears nothing.
            let _ = respond.send_response(busy, true);
        }
    }
}

async fn commit(field: &mut Field) -> Result<Happened, Trouble> {
    field.group().begin_policies_with(RULE).await?;
    let group = field.group_mut();
    let (identity, address) = (group.member_identity(TAKEN)?, group.node(TAKEN)?.api_address.clone());
    group.kill(TAKEN)?;
    let thief = Thief::serve(&identity, &address).await?;
    let robot = robot(group)?;
    let rounds: usize = field.size(50, 5);
    let mut signed = 0;
    for round in 0..rounds {
        signed += usize::from(robot.sign(SIGNER, format!("of the robot, {round}").into()).await.is_ok());
    }
    let (stolen, token) = (thief.stolen(), token_text(field.group())?);
    if stolen.is_empty() {
        return Err(Trouble::new("the client showed the member no credentials"));
    }
    let whole = stolen.iter().filter(|header| header.contains(token.trim_start_matches("theta-token2-"))).count();
    let honest: Vec<GroupNode> = field.group().nodes().iter().filter(|node| node.id.get() != TAKEN).cloned().collect();
    // What the member was sent, and the same under the names that a token could have had.
    let shown = stolen.iter().flat_map(|header| [header.clone(), header.replacen("Theta", "Bearer", 1)]);
    let (mut tried, mut believed) = (0, 0);
    for header in shown {
        for node in &honest {
            tried += 1;
            let answer = sign_as(&nobody(field.group())?, node, &header).await;
            believed += usize::from(!matches!(&answer, Err(status) if status.code() == Code::Unauthenticated));
        }
    }
    Ok(Happened {
        kept: whole == 0 && believed == 0 && signed == rounds,
        words: format!(
            "a client with a token signed {signed} of {rounds} times beside the member; it sent the member {} credentials, {whole} with \
             the token in them; of {tried} attempts to sign with these at nodes 1 to 3, {believed} were not refused as a stranger's",
            stolen.len()
        ),
        effort: Effort { connections: tried, bytes: tried * 512 },
    })
}

fn token_text(group: &Group) -> Result<String, Trouble> {
    Ok(fs::read_to_string(group.path("robot.token"))?.trim().to_owned())
}

fn nobody(group: &Group) -> Result<Client, Trouble> {
    let options = ClientOptions { timeout: PATIENCE, connect_timeout: PATIENCE, ..ClientOptions::default() };
    Ok(Client::new(group.file().clone(), None, [], options)?)
}

/// The client that the policies know by its token.
fn robot(group: &Group) -> Result<Client, Trouble> {
    let token: Token = token_text(group)?.parse().map_err(|_| Trouble::new("the token's file holds none"))?;
    Ok(nobody(group)?.with_credentials(Credentials { token: Some(token), ..Credentials::default() }))
}

/// Asks a node to sign, with this header as the only credential.
async fn sign_as(client: &Client, node: &GroupNode, header: &str) -> Result<(), Status> {
    let Asked { key, message, .. } = Asked::new(SIGNER, "of the thief");
    let mut request = Request::new(v1::SignRequest {
        key: key.to_owned(),
        message,
        wait: Wait::Started.into(),
        ..Default::default()
    });
    request.set_timeout(PATIENCE);
    let header = header.parse().map_err(|_| Status::internal("bug: a header that cannot be sent"))?;
    request.metadata_mut().insert("authorization", header);
    let mut protocol = client.protocol(node.id).map_err(|error| Status::internal(error.to_string()))?;
    protocol.sign(request).await.map(drop)
}
