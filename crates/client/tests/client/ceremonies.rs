//! Keys made, renewed, moved, recovered and destroyed by a real client of real nodes.

use std::{fs, time::Duration};

use theta_client::{
    CeremonyEnd, CeremonyOutcome, CeremonyRequest, Client, ClientError, ClientOptions, Credentials, KeyChange,
    KeyState, SigningKey, state_statement,
};
use theta_keyfiles::PublicKeyText as _;
use theta_names::{Delivery, Operation, Version};
use theta_schemes::{Suite, groups::Secret, keys::AnyPublicKey};
use theta_statements::{Approval, ApprovalTerms, Ask, RequestTerms, SignedRequest, UnixTime, Validity};
use theta_wire::v1;

use crate::group::{SIGNER, TestGroup};

/// Checks that enough nodes refused, with this reason.
fn refused_as<T>(answer: Result<T, ClientError>, why: &str) {
    match answer {
        Err(ClientError::Refused { reason, .. }) => assert!(reason.contains(why), "{reason}"),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was not refused, though {why:?}"),
    }
}

fn open(group: &TestGroup) -> Client {
    let options = ClientOptions {
        timeout: Duration::from_secs(20),
        ceremony_timeout: Duration::from_secs(90),
        ..ClientOptions::default()
    };
    Client::open_with(&group.client_folder(), options).unwrap()
}

async fn hold(client: &Client, change: KeyChange) -> CeremonyOutcome {
    let mut heard = 0;
    let outcome = client.hold(change, |_| heard += 1).await.unwrap();
    assert!(heard >= 2, "progress was reported");
    assert!(outcome.evidence.is_empty(), "{:?}", outcome.evidence);
    outcome
}

fn create(name: &str, holders: &[u16]) -> KeyChange {
    KeyChange::Create {
        key: name.parse().unwrap(),
        suite: Suite::Bls04MinPk.into(),
        delivery: Delivery::All,
        k: 2,
        holders: holders.to_vec(),
    }
}

fn key_file(group: &TestGroup, name: &str) -> AnyPublicKey {
    let text = fs::read_to_string(group.client_folder().join(format!("keys/{name}.pub"))).unwrap();
    AnyPublicKey::from_text(&text).unwrap().1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_made_renewed_moved_and_destroyed_while_it_serves() {
    let group = TestGroup::new().await;
    let client = open(&group);
    let made = hold(&client, create("made", &[1, 2, 3])).await;
    let CeremonyEnd::Activated { key_id, .. } = made.end else { panic!("{made:?}") };
    assert_eq!((made.aim.as_str(), made.version.get(), made.epoch.get()), ("create", 1, 0));
    let public = key_file(&group, "made");
    assert_eq!(public.key_id().as_bytes(), &key_id, "the client's folder has the new key");
    let signed = client.sign("made", "one".into()).await.unwrap();
    public.verify(b"one", &signed.result, &[]).unwrap();

    let refresh = KeyChange::Refresh { key: "made".parse().unwrap(), version: None };
    let refreshed = hold(&client, refresh).await;
    assert!(matches!(refreshed.end, CeremonyEnd::Activated { key_id: id, .. } if id == key_id));
    assert_eq!(refreshed.epoch.get(), 1);
    let reshare = KeyChange::Reshare { key: "made".parse().unwrap(), version: None, k: 2, holders: vec![2, 3, 4] };
    let moved = hold(&client, reshare).await;
    assert!(matches!(moved.end, CeremonyEnd::Activated { key_id: id, .. } if id == key_id));
    let signed = client.sign("made", "two".into()).await.unwrap();
    public.verify(b"two", &signed.result, &[]).unwrap();
    let (keys, _) = client.list_keys().await;
    let listed = keys.iter().find(|key| key.info.name == "made" && key.nodes.len() >= 3).unwrap();
    assert_eq!(
        (listed.info.holders.as_slice(), listed.info.epoch, listed.info.state.as_str()),
        (&[2, 3, 4][..], 2, "active")
    );

    let rotated = hold(&client, KeyChange::Rotate { key: "made".parse().unwrap() }).await;
    assert_eq!((rotated.version.get(), rotated.aim.as_str()), (2, "rotate"));
    let next = key_file(&group, "made");
    assert_ne!(next.key_id(), public.key_id());
    let signed = client.sign("made", "three".into()).await.unwrap();
    next.verify(b"three", &signed.result, &[]).unwrap();
    let old = client.sign("made@1", "no more".into()).await.unwrap_err();
    assert!(matches!(old, ClientError::Refused { .. } | ClientError::NoAnswer { .. }), "{old}");

    let (ceremonies, problems) = client.ceremonies().await;
    assert!(problems.is_empty() && ceremonies.iter().any(|(_, held)| held.iter().any(|one| one.aim == "rotate")));

    client.change_state("made", None, KeyState::Disabled).await.unwrap();
    refused_as(client.sign("made", "four".into()).await, "is disabled");
    client.change_state("made", None, KeyState::Active).await.unwrap();
    client.sign("made", "four".into()).await.unwrap();
    client.change_state("made", None, KeyState::Destroyed).await.unwrap();
    refused_as(client.sign("made", "five".into()).await, "is destroyed");
    // A destroyed key cannot be enabled again.
    refused_as(client.change_state("made", None, KeyState::Active).await, "from destroyed to active");
    client.sign(SIGNER, "other keys serve".into()).await.unwrap();
    group.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signed_request_holds_one_ceremony_and_not_another() {
    let group = TestGroup::new().await;
    let signer = || SigningKey::from_seed(Secret::new([7; 32])).unwrap();
    let policy = format!(
        "{}\n[[client]]\nname = \"officer\"\nsigning_keys = [\"{}\"]\n[[rule]]\nname = \"officer-makes\"\neffect = \"allow\"\n\
         clients = [\"officer\"]\nkeys = [\"made-*\"]\noperations = [\"keys.create\"]\n",
        fs::read_to_string(group.folder.path().join("node-1/policy.toml"))
            .unwrap()
            .replace("operations = [\"*\"]", "operations = [\"keys.list\", \"sign\"]"),
        signer().verifying_key()
    );
    group.set_policies(&policy).await;
    let plain = open(&group);
    let officer = plain.clone().with_credentials(Credentials { signer: Some(signer()), ..Credentials::default() });
    for (client, change) in [
        (&plain, create("made-1", &[1, 2, 3, 4])),
        (&officer, create("other", &[1, 2, 3, 4])),
        (&officer, KeyChange::Rotate { key: SIGNER.parse().unwrap() }),
    ] {
        let refused = client.hold(change, |_| {}).await.unwrap_err();
        assert!(matches!(&refused, ClientError::Denied { reason, .. } if reason == "no-rule"), "{refused}");
    }
    hold(&officer, create("made-1", &[1, 2, 3, 4])).await;
    plain.sign("made-1", "made by leave".into()).await.unwrap();

    // A nonce has 32 bytes. For a ceremony that nobody signed, the client draws it.
    let mut keys = tonic_keys(&group).await;
    let change = create("made-2", &[1, 2, 3, 4]).encode();
    let short = v1::HoldCeremonyRequest { change: change.into(), nonce: vec![1; 31].into(), ..Default::default() };
    group.set_policies(&policy.replace("\"keys.list\", \"sign\"", "\"*\"")).await;
    assert_eq!(keys.hold_ceremony(short).await.unwrap_err().code(), tonic::Code::InvalidArgument);
    let garbage = v1::HoldCeremonyRequest { change: vec![9; 40].into(), ..Default::default() };
    assert_eq!(keys.hold_ceremony(garbage).await.unwrap_err().code(), tonic::Code::InvalidArgument);
    let unknown = v1::WatchCeremonyRequest { id: vec![1; 32].into() };
    assert_eq!(keys.watch_ceremony(unknown).await.unwrap_err().code(), tonic::Code::NotFound);
    let exists = plain.hold(create(SIGNER, &[1, 2, 3, 4]), |_| {}).await.unwrap_err();
    assert!(exists.to_string().contains("exists or existed"), "{exists}");
    group.shutdown().await;
}

/// A governed group, and consents to its ceremonies that somebody has recorded.
struct Governed {
    group: TestGroup,
    client: Client,
    name: String,
    validity: Validity,
    ann: SigningKey,
    officer: SigningKey,
}

impl Governed {
    /// The tester rotates, enables and disables with ann's approval; an officer who signs enables and disables alone.
    async fn new() -> Self {
        let group = TestGroup::new().await;
        let seed = |number: u8| SigningKey::from_seed(Secret::new([number; 32])).unwrap();
        let (ann, officer) = (seed(11), seed(7));
        let policy = fs::read_to_string(group.folder.path().join("node-1/policy.toml")).unwrap();
        let policy = policy.replace("operations = [\"*\"]", "operations = [\"keys.list\", \"sign\", \"keys.refresh\"]");
        let people = format!(
            "\n[[client]]\nname = \"officer\"\nsigning_keys = [\"{}\"]\n[[approver]]\nname = \"ann\"\nkey = \"{}\"\n\
             [[rule]]\nname = \"with-ann\"\neffect = \"allow\"\nclients = [\"tester\"]\nkeys = [\"*\"]\n\
             operations = [\"keys.rotate\", \"keys.enable\", \"keys.disable\"]\napprovals = {{ of = [\"ann\"], need = 1 }}\n\
             [[rule]]\nname = \"officer-alone\"\neffect = \"allow\"\nclients = [\"officer\"]\nkeys = [\"*\"]\n\
             operations = [\"keys.enable\", \"keys.disable\"]\n",
            officer.verifying_key(),
            ann.verifying_key()
        );
        group.set_policies(&(policy + &people)).await;
        let (client, name) = (open(&group), group.group.name().to_owned());
        let now = UnixTime(std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64);
        let validity = Validity { from: UnixTime(now.0 - 60_000), until: now.plus(600_000) };
        Self { group, client, name, validity, ann, officer }
    }

    /// The tester with ann's approval of this.
    fn approved(&self, operation: Operation, statement: &[u8]) -> Client {
        let ask = Ask { key: Some(SIGNER), statement, ..Ask::new(&self.name, operation) };
        let approvals = vec![Approval::sign(ApprovalTerms::of(&ask, self.validity).unwrap(), &self.ann)];
        self.client.clone().with_credentials(Credentials { approvals, ..Credentials::default() })
    }

    /// The tester with ann's approval of a change of the key's state.
    fn approved_state(&self, state: KeyState, generation: u64) -> Client {
        let operation = if state == KeyState::Active { Operation::KeysEnable } else { Operation::KeysDisable };
        self.approved(operation, &state_statement(&SIGNER.parse().unwrap(), None, state, generation))
    }

    /// What the officer signed, to be carried by anybody.
    fn signed(&self, state: KeyState, generation: u64) -> v1::ChangeKeyStateRequest {
        let operation = if state == KeyState::Active { Operation::KeysEnable } else { Operation::KeysDisable };
        let statement = state_statement(&SIGNER.parse().unwrap(), None, state, generation);
        let ask = Ask { key: Some(SIGNER), statement: &statement, ..Ask::new(&self.name, operation) };
        let terms = RequestTerms::of(&ask, self.validity, [9; 16]).unwrap();
        v1::ChangeKeyStateRequest {
            key: SIGNER.to_owned(),
            state: state.name().to_owned(),
            generation,
            signed_request: SignedRequest::sign(terms, &self.officer).encode().into(),
            ..Default::default()
        }
    }
}

/// One approval of a rotation used to make three.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_approval_of_a_rotation_makes_one() {
    let governed = Governed::new().await;
    let change = KeyChange::Rotate { key: SIGNER.parse().unwrap() };
    let request = CeremonyRequest { nonce: [5; 32], change: change.clone() };
    let with = governed.approved(Operation::KeysRotate, &request.encode());
    let first = with.hold_request(request.clone(), |_| {}).await.unwrap();
    assert_eq!(first.version.get(), 2);
    // The same approval again, first for the same request, hence the same ceremony, then for another, which it does not
    // approve.
    let again = with.hold_request(request.clone(), |_| {}).await.unwrap();
    assert_eq!((again.version.get(), again.id), (2, first.id));
    let other = with.hold(change, |_| {}).await.unwrap_err();
    assert!(matches!(&other, ClientError::Denied { reason, .. } if reason == "too-few-approvals"), "{other}");
    // A node refuses the request once it has forgotten how the ceremony ended, after 16 later ceremonies. A slow node may
    // have missed a few of these and remembers longer; it then reports the same ceremony.
    let used = async {
        for _ in 0..64 {
            hold(&governed.client, KeyChange::Refresh { key: SIGNER.parse().unwrap(), version: Version::new(2) }).await;
            match with.hold_request(request.clone(), |_| {}).await {
                Ok(told) => assert_eq!((told.version.get(), told.id), (2, first.id)),
                Err(used) => return used,
            }
        }
        panic!("64 ceremonies later the first is still told of");
    };
    let used = used.await;
    assert!(used.to_string().contains("used up"), "{used}");
    let (keys, _) = governed.client.list_keys().await;
    assert_eq!(keys.iter().filter(|key| key.info.name == SIGNER).map(|key| key.info.version).max(), Some(2));
    governed.group.shutdown().await;
}

/// An old approved enable used to undo a newer disable, and anybody could send a signed one again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_enable_does_not_undo_a_newer_disable() {
    let governed = Governed::new().await;
    let enable = governed.approved_state(KeyState::Active, 2);
    let disable = async |generation| {
        let client = governed.approved_state(KeyState::Disabled, generation);
        client.change_state_at(SIGNER, None, KeyState::Disabled, generation).await.unwrap();
    };
    disable(1).await;
    enable.change_state_at(SIGNER, None, KeyState::Active, 2).await.unwrap();
    assert_eq!(governed.client.next_generation(&SIGNER.parse().unwrap()).await.unwrap(), 3);
    disable(3).await;
    let old = enable.change_state_at(SIGNER, None, KeyState::Active, 2).await.unwrap_err();
    assert!(old.to_string().contains("names generation 2") && old.to_string().contains("is at 3"), "{old}");
    let stretched = enable.change_state_at(SIGNER, None, KeyState::Active, 4).await.unwrap_err();
    assert!(matches!(&stretched, ClientError::Denied { .. }), "{stretched}");
    refused_as(governed.client.sign(SIGNER, "disabled".into()).await, "is disabled");

    // Node 1 alone is asked, for what the officer has signed: the others hear of it, and ask their own policies.
    let mut node = tonic_keys(&governed.group).await;
    let (enable, disable) = (governed.signed(KeyState::Active, 4), governed.signed(KeyState::Disabled, 5));
    decided(&mut node, &enable).await;
    let frozen = node.change_key_state(disable.clone()).await.unwrap().into_inner();
    assert!(frozen.frozen || frozen.decided, "it stops at once");
    decided(&mut node, &disable).await;
    let replayed = node.change_key_state(enable.clone()).await.unwrap_err();
    assert_eq!(replayed.code(), tonic::Code::FailedPrecondition);
    assert!(replayed.message().contains("names generation 4 and key"), "{replayed}");
    // The last change may be sent again, since its answer may have been lost.
    node.change_key_state(disable).await.unwrap();
    let bare = v1::ChangeKeyStateRequest { generation: 0, ..enable };
    assert_eq!(node.change_key_state(bare).await.unwrap_err().code(), tonic::Code::InvalidArgument);
    governed.group.shutdown().await;
}

type Keys = v1::threshold_keys_client::ThresholdKeysClient;

/// Asks one node for a change of state until the group has decided it.
async fn decided(node: &mut Keys, change: &v1::ChangeKeyStateRequest) {
    while !node.change_key_state(change.clone()).await.unwrap().into_inner().decided {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn tonic_keys(group: &TestGroup) -> Keys {
    v1::threshold_keys_client::ThresholdKeysClient::new(group.channel(1).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_down_is_asked_again_and_keeps_what_was_made() {
    let mut group = TestGroup::new().await;
    let client = open(&group);
    group.nodes[3].take().unwrap().shutdown().await;
    let change = create("made", &[1, 2, 3, 4]);
    let ceremony = tokio::spawn({
        let client = client.clone();
        async move { client.hold(change, |_| {}).await }
    });
    tokio::time::sleep(Duration::from_millis(800)).await;
    let config = theta_service::NodeConfig::load(&group.folder.path().join("node-4/node.toml")).unwrap();
    group.nodes[3] = Some(theta_service::Node::start(config).await.unwrap());
    let outcome = ceremony.await.unwrap().unwrap();
    assert!(matches!(outcome.end, CeremonyEnd::Activated { .. }), "{outcome:?}");
    client.sign("made", "by all".into()).await.unwrap();
    for id in 1..=4 {
        group.restart(id).await;
    }
    let client = open(&group);
    let signed = client.sign("made", "after a restart".into()).await.unwrap();
    key_file(&group, "made").verify(b"after a restart", &signed.result, &[]).unwrap();
    let asked = client.hold(KeyChange::Recover { key: "made".parse().unwrap(), version: None, node: 9 }, |_| {}).await;
    refused_as(asked, "node 9 is no holder");
    group.shutdown().await;
}
