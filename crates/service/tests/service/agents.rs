//! Rules whose agent consents by content: real agents on real sockets beside real nodes.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use theta_network::Identity;
use theta_statements::audit::AuditRecord;
use theta_wire::{
    agent::{
        ConsentRequest, ConsentResponse,
        agent_server::{Agent, AgentServer},
    },
    v1::{self, SignRequest, threshold_protocol_client::ThresholdProtocolClient},
};
use tokio::{net::UnixListener, runtime::Runtime, time};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Code, Request, Response, Status, transport::Server};

use crate::group::{COIN, Prepared, SIGNER, TestGroup};

/// It consents to records of its zone.
struct Zone;

#[tonic::async_trait]
impl Agent for Zone {
    async fn consent(&self, request: Request<ConsentRequest>) -> Result<Response<ConsentResponse>, Status> {
        let ConsentRequest { group, client, key, operation, statement, time_ms, .. } = request.into_inner();
        assert_eq!((group.as_str(), key.as_str()), ("test", SIGNER));
        assert!(["tester", "other"].contains(&client.as_str()), "{client}");
        assert!(operation == "sign" && time_ms > 1_700_000_000_000, "{operation} {time_ms}");
        if statement.starts_with(b"slow") {
            time::sleep(Duration::from_secs(5)).await;
        }
        if statement.starts_with(b"broken") {
            return Err(Status::internal("the zone cannot be read"));
        }
        let consents = statement.starts_with(b"www.example.");
        let reason = if consents { "a record of\nthe zone" } else { "there is no such record in the zone" };
        Ok(Response::new(ConsentResponse { consents, reason: reason.to_owned() }))
    }
}

/// An agent with threads of its own; with them all its connections end when this is dropped, as of a process that is killed.
struct Serving(Option<Runtime>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.take().unwrap().shutdown_background();
    }
}

fn serve(socket: &Path) -> Serving {
    let _ = fs::remove_file(socket);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let inside = runtime.enter();
    let listener = UnixListener::bind(socket).unwrap();
    let serving =
        Server::builder().add_service(AgentServer::new(Zone)).serve_with_incoming(UnixListenerStream::new(listener));
    runtime.spawn(async move { serving.await.unwrap() });
    drop(inside);
    Serving(Some(runtime))
}

fn socket(folder: &Path, id: u16) -> PathBuf {
    folder.join(format!("node-{id}/zone.sock"))
}

/// A group of 2 of 4, in which nodes 1 to 3 sign what their agents consent to. Node 4 is another operator's, who has no agent.
async fn group() -> TestGroup {
    let prepared = Prepared::new(2, 4);
    for id in 1..=3 {
        let socket = socket(prepared.folder.path(), id);
        let agent = format!("[[agent]]\nname = \"zone\"\nsocket = \"{}\"\ntimeout_ms = 4000\n\n", socket.display());
        let signs = prepared.open_policy().replace("[\"*\"]\noperations = [\"*\"]", &format!(
            "[\"{SIGNER}\"]\noperations = [\"sign\"]\nagent = \"zone\"\n\n[[rule]]\nname = \"coins\"\neffect = \"allow\"\n\
             clients = [\"tester\"]\nkeys = [\"*\"]\noperations = [\"flip-coin\", \"audit.read\"]"
        ));
        let text = signs.replacen("format = 1\n", &format!("format = 1\n{agent}"), 1);
        fs::write(prepared.folder.path().join(format!("node-{id}/policy.toml")), text).unwrap();
    }
    prepared.start(|_, _| {}, |_, node| node).await
}

type Protocol = ThresholdProtocolClient;

/// What each node answers that is asked to sign this message, and all are asked at once.
async fn sign(group: &TestGroup, message: &'static str, nodes: &[u16]) -> Vec<Result<Bytes, Status>> {
    let mut asked = Vec::new();
    for id in nodes {
        let mut node = Protocol::new(group.channel(*id).await);
        let mut request =
            Request::new(SignRequest { key: SIGNER.to_owned(), message: message.into(), ..Default::default() });
        request.set_timeout(Duration::from_secs(15));
        asked.push(tokio::spawn(async move {
            node.sign(request).await.map(|answer| answer.into_inner().outcome.unwrap().result)
        }));
    }
    let mut answers = Vec::new();
    for answer in asked {
        answers.push(answer.await.unwrap());
    }
    answers
}

fn refused(answer: &Result<Bytes, Status>, reason: &str, words: &str) {
    let status = answer.as_ref().unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied, "{status}");
    assert_eq!(status.metadata().get("theta-reason").unwrap(), reason, "{status}");
    assert!(status.message().contains(words), "{status}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_sign_what_their_agents_consent_to() {
    let group = group().await;
    let agents: Vec<_> = (1..=3).map(|id| serve(&socket(group.folder.path(), id))).collect();
    let public = group.public(SIGNER);
    for answer in sign(&group, "www.example. A 192.0.2.1", &[1, 2, 3, 4]).await {
        assert!(public.verify(b"www.example. A 192.0.2.1", &answer.unwrap(), &[]).is_ok());
    }

    // What one operator lets pass is signed by nobody else, and so not at all.
    let answers = sign(&group, "www.victim. A 192.0.2.66", &[1, 2, 3, 4]).await;
    for answer in &answers[..3] {
        refused(answer, "agent-refuses", "agent zone refuses it: there is no such record in the zone");
    }
    assert!([Code::DeadlineExceeded, Code::Cancelled].contains(&answers[3].as_ref().unwrap_err().code()));
    let mut governance = v1::governance_client::GovernanceClient::new(group.channel(1).await);
    let mut entries = governance.read_audit(v1::ReadAuditRequest { from: 0, count: 0 }).await.unwrap().into_inner();
    let mut records = Vec::new();
    while let Some(entry) = entries.message().await.unwrap() {
        records.push(AuditRecord::decode(&entry.record).unwrap());
    }
    let refusal = records.iter().find(|record| record.reason == "agent-refuses").unwrap();
    assert!(refusal.detail.contains("no such record") && refusal.client.as_deref() == Some("tester"), "{refusal:?}");
    let consent = records.iter().find(|record| record.allowed && record.operation == "sign").unwrap();
    assert_eq!(consent.detail, "allowed; agent zone consents: a record of the zone");

    // Nothing goes by other ways: in a batch each is asked about, too.
    let items = ["www.example. A 192.0.2.2", "www.victim. A 192.0.2.67"].map(|message| v1::BatchItem {
        request: Some(v1::batch_item::Request::Sign(SignRequest {
            key: SIGNER.to_owned(),
            message: message.into(),
            ..Default::default()
        })),
    });
    let batch = v1::BatchRequest { items: items.to_vec() };
    let mut second = Protocol::new(group.channel(2).await);
    let copy = batch.clone();
    // Who goes away leaves its instances: both nodes are heard to the end.
    let other = tokio::spawn(async move {
        let mut answers = second.batch(copy).await.unwrap().into_inner();
        while answers.message().await.unwrap().is_some() {}
    });
    let mut first = Protocol::new(group.channel(1).await).batch(batch).await.unwrap().into_inner();
    let (mut signed, mut denied) = (0, 0);
    while let Some(answer) = first.message().await.unwrap() {
        match answer.answer.unwrap() {
            v1::batch_answer::Answer::Refused(refused) if answer.item == 1 => {
                assert!(refused.message.contains("agent zone refuses it"), "{refused:?}");
                denied += 1;
            }
            v1::batch_answer::Answer::Sign(_) if answer.item == 0 => signed += 1,
            answer => panic!("{answer:?}"),
        }
    }
    assert_eq!((signed, denied), (1, 1));
    other.await.unwrap();
    drop(agents);
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_is_away_refuses_and_comes_back() {
    let group = group().await;
    // What needs no agent goes on.
    let flip = v1::FlipCoinRequest { key: COIN.to_owned(), name: "monday".into(), ..Default::default() };
    let mut second = Protocol::new(group.channel(2).await);
    let copy = flip.clone();
    let other = tokio::spawn(async move { second.flip_coin(copy).await });
    Protocol::new(group.channel(1).await).flip_coin(flip).await.unwrap();
    other.await.unwrap().unwrap();

    refused(&sign(&group, "www.example. A 192.0.2.1", &[1]).await[0], "agent-silent", "nothing answers on its socket");
    let agents: Vec<_> = (1..=2).map(|id| serve(&socket(group.folder.path(), id))).collect();
    refused(&sign(&group, "slow", &[1]).await[0], "agent-silent", "it did not answer within 4000 ms");
    refused(&sign(&group, "broken", &[1]).await[0], "agent-silent", "the zone cannot be read");
    for answer in sign(&group, "www.example. A 192.0.2.1", &[1, 2]).await {
        answer.unwrap();
    }
    drop(agents);
    refused(&sign(&group, "www.example. A 192.0.2.2", &[1]).await[0], "agent-silent", "");
    let agents: Vec<_> = (1..=2).map(|id| serve(&socket(group.folder.path(), id))).collect();
    for answer in sign(&group, "www.example. A 192.0.2.2", &[1, 2]).await {
        answer.unwrap();
    }
    drop(agents);
    group.shutdown().await;
}

/// A client that asks for what the agent takes long to look at keeps nobody else from it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_clients_questions_keep_no_other_client_from_an_agent() {
    let prepared = Prepared::new(2, 4);
    let made = Identity::generate("other").unwrap();
    let other = Identity::from_pem(&made.certificate_pem, &made.key_pem).unwrap();
    let socket = socket(prepared.folder.path(), 1);
    let agent = format!("[[agent]]\nname = \"zone\"\nsocket = \"{}\"\ntimeout_ms = 2000\n\n", socket.display());
    let text = prepared.open_policy().replace("clients = [\"tester\"]", "clients = [\"*\"]\nagent = \"zone\"");
    let text = text.replace("operations = [\"*\"]", "operations = [\"sign\"]");
    let client = format!("[[client]]\nname = \"other\"\ncertificates = [\"{}\"]\n\n", other.fingerprint());
    prepared.write_policy(&text.replacen("format = 1\n", &format!("format = 1\n{agent}{client}"), 1));
    let group = prepared.start(|_, _| {}, |_, node| node).await;
    let _agent = serve(&socket);

    let greedy = Protocol::new(group.channel(1).await);
    let mut flood = Vec::new();
    for number in 0..400 {
        let mut node = greedy.clone();
        let message = format!("slow {number}").into();
        let request = SignRequest { key: SIGNER.to_owned(), message, ..Default::default() };
        flood.push(tokio::spawn(async move { node.sign(request).await.is_ok() }));
    }
    time::sleep(Duration::from_millis(300)).await;
    let mut node = Protocol::new(group.channel_as(1, &other).await.unwrap());
    let message = Bytes::from_static(b"www.example. A 192.0.2.9");
    let request = SignRequest { key: SIGNER.to_owned(), message, wait: v1::Wait::Started.into(), ..Default::default() };
    node.sign(request).await.unwrap();
    for asked in flood {
        assert!(!asked.await.unwrap());
    }
    group.shutdown().await;
}
