//! Whole networks of real processes on this machine: beside each CometBFT node an application and a node of the group.

mod comet;
mod policies;

use std::{
    fs::{self, File, OpenOptions},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rand_core::Rng as _;
use theta::{exit::Failure, group::plan::Plan};
use theta_client::{Client, ClientOptions, KeyChange};
use theta_cluster::{Cluster, Lifetime};
use theta_keyfiles::PublicKeyText as _;
use theta_names::Delivery;
use theta_schemes::{Suite, keys::AnyPublicKey};
use tokio::time::sleep;

use self::comet::Ports;
pub use self::comet::{COMETBFT, PROGRAM, find};
use crate::{
    market::{Genesis, GenesisAccount, Pool, Trader},
    validator::{Behaviour, FILE, Rpc, SOCKET, ValidatorFile, View},
};

/// How many validators a network has, each with a node of the group: one may lie.
pub const VALIDATORS: u16 = 4;
/// How many nodes open an order.
pub const THRESHOLD: u16 = 2;
/// What the group calls the key of the orders.
pub const KEY: &str = "orders";
/// The key whose slots go to the message that is first in the validators' order.
pub const ORDERED_KEY: &str = "checkpoints";
/// One whose slots go to no message if nodes hear of several.
pub const UNORDERED_KEY: &str = "unordered";
/// The command of this program that runs a validator's application.
pub const VALIDATOR: &str = "_x_validator";
/// How long processes may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a network is to be like.
#[derive(Clone, Debug)]
pub struct Wishes {
    /// The chain's name.
    pub chain: String,
    /// Whether orders that everybody can read are taken, too.
    pub plain_orders: bool,
    /// The number of a validator that misbehaves, from 1, and how.
    pub liar: Option<(u16, Behaviour)>,
}

/// Who trades: each has as much of both goods.
#[derive(Debug)]
pub struct Traders {
    /// Trades by accident whenever the front-runner does.
    pub alice: Trader,
    /// Trades, too.
    pub bob: Trader,
    /// The account of the validator that misbehaves.
    pub mallory: Trader,
}

/// A running network. Dropping it kills its processes.
pub struct Network {
    program: PathBuf,
    cometbft: PathBuf,
    dir: PathBuf,
    group: Cluster,
    operator: Client,
    key: AnyPublicKey,
    chain: String,
    validators: Vec<Processes>,
    /// Who trades.
    pub traders: Traders,
}

struct Processes {
    number: u16,
    rpc: Rpc,
    application: Option<Child>,
    cometbft: Option<Child>,
}

impl Network {
    /// Makes a network in a directory, which must not exist, and starts its group, which makes the key; not yet the validators. `program`
    /// is this program: it runs nodes and validators.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn create(program: PathBuf, cometbft: PathBuf, dir: &Path, wishes: &Wishes) -> Result<Self, Failure> {
        fs::create_dir(dir).map_err(|error| Failure::writing(dir, &error))?;
        let dir = dir.canonicalize().map_err(|error| Failure::reading(dir, &error))?;
        let plan = Plan::new(VALIDATORS, THRESHOLD, Vec::new())?;
        let mut group = Cluster::create(program.clone(), &dir.join("group"), &plan, Lifetime::Tied)?;
        let numbers: Vec<u16> = (1..=VALIDATORS).collect();
        for number in &numbers {
            let client = dir.join(format!("validator-{number}/client"));
            policies::admit_own_validator(&dir.join("group"), *number, &client, &wishes.chain)?;
        }
        group.start_all()?;
        group.listening(PATIENCE).await?;
        let options = ClientOptions { timeout: Duration::from_secs(10), ..ClientOptions::default() };
        let operator = Client::open_with(&group.client_dir(), options)?;
        let key = make_key(&operator).await?;

        let (secret, mallory) = trader()?;
        let traders = Traders { alice: trader()?.1, bob: trader()?.1, mallory };
        let secrets = (0..VALIDATORS).map(|_| trader()).collect::<Result<Vec<_>, _>>()?;
        let ports = free_ports(VALIDATORS)?;
        let genesis = Genesis {
            key: key.to_text(&KEY.parse().map_err(Failure::internal)?),
            validators: secrets.iter().map(|(_, signer)| hex::encode(signer.id())).collect(),
            plain_orders: wishes.plain_orders,
            accounts: [&traders.alice, &traders.bob, &traders.mallory].map(account).to_vec(),
            pool: Pool { coin: 1_000_000, gold: 1_000_000 },
        };
        let validator_dir = |number: u16| dir.join(format!("validator-{number}"));
        let sockets: Vec<PathBuf> = numbers.iter().map(|number| validator_dir(*number).join(SOCKET)).collect();
        let homes = dir.join("cometbft");
        comet::make_homes(&cometbft, &homes, &wishes.chain, &genesis, &ports, &sockets)?;
        let mut validators = Vec::new();
        for ((number, place), ((own, _), ports)) in numbers.iter().zip(0..).zip(secrets.iter().zip(&ports)) {
            let liar = wishes.liar.filter(|(liar, _)| liar == number);
            let rpc = format!("127.0.0.1:{}", ports.rpc);
            let file = ValidatorFile {
                node: *number,
                place,
                secret: hex::encode(own),
                rpc: rpc.clone(),
                order: true,
                behaviour: liar.map_or(Behaviour::Honest, |(_, behaviour)| behaviour),
                account: liar.map(|_| hex::encode(secret)),
            };
            file.write(&validator_dir(*number).join(FILE))?;
            validators.push(Processes { number: *number, rpc: Rpc::new(rpc), application: None, cometbft: None });
        }
        let chain = wishes.chain.clone();
        Ok(Self { program, cometbft, dir, group, operator, key, chain, validators, traders })
    }

    /// Starts all validators.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn start_validators(&mut self) -> Result<(), Failure> {
        for number in 1..=VALIDATORS {
            self.start_validator(number).await?;
        }
        Ok(())
    }

    /// Starts a validator that does not run: application and CometBFT. Its node of the group is started by [`Network::start_node`].
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn start_validator(&mut self, number: u16) -> Result<(), Failure> {
        let dir = self.dir.join(format!("validator-{number}"));
        let socket = dir.join(SOCKET);
        // Of an application that was killed.
        let _ = fs::remove_file(&socket);
        let mut application = Command::new(&self.program);
        application.arg(VALIDATOR).arg("--dir").arg(&dir).arg("--stop-on-eof");
        // It ends when this process does, however it ends.
        application.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log(&dir.join("application.log"))?);
        let application = spawn(&mut application)?;
        let home = self.dir.join(format!("cometbft/node{}", number.saturating_sub(1)));
        let mut cometbft = Command::new(&self.cometbft);
        cometbft.args(["start", "--home"]).arg(home).stdin(Stdio::null());
        cometbft.stdout(log(&dir.join("cometbft.log"))?).stderr(log(&dir.join("cometbft.log"))?);
        let deadline = Instant::now() + PATIENCE;
        while !socket.exists() {
            if Instant::now() > deadline {
                return Err(Failure::NoAnswer(format!("validator {number} does not start: see {}", dir.display())));
            }
            sleep(Duration::from_millis(10)).await;
        }
        let validator = self.processes(number)?;
        // Whatever happens from here on, the application is killed with the network. CometBFT ends without its application.
        validator.application = Some(application);
        validator.cometbft = Some(spawn(&mut cometbft)?);
        Ok(())
    }

    /// Ends a validator and starts it again with another behaviour.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn behave(&mut self, number: u16, behaviour: Behaviour) -> Result<(), Failure> {
        self.kill_validator(number)?;
        let path = self.dir.join(format!("validator-{number}")).join(FILE);
        let file = ValidatorFile::load(&path)?;
        ValidatorFile { behaviour, ..file }.write(&path)?;
        self.start_validator(number).await
    }

    /// Starts a node of the group that does not run.
    ///
    /// # Errors
    /// [`Failure`].
    pub async fn start_node(&mut self, number: u16) -> Result<(), Failure> {
        self.group.start(number)?;
        self.group.listening(PATIENCE).await
    }

    /// Ends a validator's application and CometBFT as a power failure would: SIGKILL.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn kill_validator(&mut self, number: u16) -> Result<(), Failure> {
        let validator = self.processes(number)?;
        end(&mut validator.cometbft);
        end(&mut validator.application);
        Ok(())
    }

    /// The same with its node of the group.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn kill_node(&mut self, number: u16) -> Result<(), Failure> {
        self.group.kill(number)
    }

    /// Waits until the chain of all running validators has this height.
    ///
    /// # Errors
    /// [`Failure::NoAnswer`] names one that has not.
    pub async fn reach(&self, height: u64, patience: Duration) -> Result<(), Failure> {
        let deadline = Instant::now() + patience;
        for validator in self.validators.iter().filter(|validator| validator.cometbft.is_some()) {
            loop {
                let reached = validator.rpc.view().await.map(|view| view.height);
                match reached {
                    Ok(reached) if reached >= height => break,
                    _ if Instant::now() > deadline => {
                        let number = validator.number;
                        let log = self.dir.join(format!("validator-{number}"));
                        return Err(Failure::NoAnswer(format!(
                            "validator {number} is at {reached:?} and not at {height}: see {}/*.log",
                            log.display()
                        )));
                    }
                    _ => sleep(Duration::from_millis(20)).await,
                }
            }
        }
        Ok(())
    }

    /// Waits until a validator shows something.
    ///
    /// # Errors
    /// [`Failure::NoAnswer`] with what it shows in the end.
    pub async fn until(&self, number: u16, patience: Duration, what: impl Fn(&View) -> bool) -> Result<View, Failure> {
        let deadline = Instant::now() + patience;
        let rpc = self.rpc(number)?;
        loop {
            let view = rpc.view().await;
            match view {
                Ok(view) if what(&view) => return Ok(view),
                view if Instant::now() > deadline => {
                    return Err(Failure::NoAnswer(format!("validator {number} does not come to it: {view:?}")));
                }
                _ => sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// The RPC of a validator's CometBFT.
    ///
    /// # Errors
    /// [`Failure::Internal`] if there is no such validator.
    pub fn rpc(&self, number: u16) -> Result<&Rpc, Failure> {
        let found = self.validators.iter().find(|validator| validator.number == number);
        found.map(|validator| &validator.rpc).ok_or_else(|| Failure::internal("no such validator"))
    }

    fn processes(&mut self, number: u16) -> Result<&mut Processes, Failure> {
        let found = self.validators.iter_mut().find(|validator| validator.number == number);
        found.ok_or_else(|| Failure::internal("no such validator"))
    }

    /// The key that orders are encrypted to.
    #[must_use]
    pub const fn key(&self) -> &AnyPublicKey {
        &self.key
    }

    /// The chain's name.
    #[must_use]
    pub fn chain(&self) -> &str {
        &self.chain
    }

    /// Where everything is.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A client that may make keys and look, and may not open anything.
    #[must_use]
    pub const fn operator(&self) -> &Client {
        &self.operator
    }

    /// The client with which a validator asks its node.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn validators_client(&self, number: u16) -> Result<Client, Failure> {
        Ok(Client::open(&self.dir.join(format!("validator-{number}/client")))?)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for validator in &mut self.validators {
            end(&mut validator.cometbft);
            end(&mut validator.application);
        }
    }
}

/// The nodes make the key among themselves.
async fn make_key(operator: &Client) -> Result<AnyPublicKey, Failure> {
    let key = KEY.parse().map_err(Failure::internal)?;
    let holders = (1..=VALIDATORS).collect();
    let suite = Suite::Sg02Ristretto255.into();
    let create = KeyChange::Create { key, suite, delivery: Delivery::All, k: THRESHOLD, holders };
    operator.hold(create, |_| ()).await?;
    Ok(operator.public_key(KEY).await?)
}

fn account(trader: &Trader) -> GenesisAccount {
    GenesisAccount { trader: hex::encode(trader.id()), coin: 1_000_000, gold: 1_000_000 }
}

/// A new trader, with the secret.
fn trader() -> Result<([u8; 32], Trader), Failure> {
    let mut secret = [0; 32];
    theta::random::generator()?.fill_bytes(&mut secret);
    Ok((secret, Trader::from_seed(&secret).ok_or_else(no_key)?))
}

fn no_key() -> Failure {
    Failure::internal("an Ed25519 key is refused")
}

fn spawn(command: &mut Command) -> Result<Child, Failure> {
    let shown = command.get_program().to_string_lossy().into_owned();
    command.spawn().map_err(|error| Failure::Failed(format!("{shown} does not start: {error}")))
}

fn log(path: &Path) -> Result<File, Failure> {
    OpenOptions::new().create(true).append(true).open(path).map_err(|error| Failure::writing(path, &error))
}

/// Kills a process and waits for its end; nothing can be done about one that has ended by itself.
fn end(process: &mut Option<Child>) {
    if let Some(mut process) = process.take() {
        let _ = process.kill();
        let _ = process.wait();
    }
}

/// Ports on which nobody listens now, outside the range of outgoing connections.
fn free_ports(count: u16) -> Result<Vec<Ports>, Failure> {
    let mut rng = theta::random::generator()?;
    // Held until all are found, so that none is found twice.
    let mut held = Vec::new();
    let mut port = || {
        (0..1_000).find_map(|_| {
            let wanted = u16::try_from(12_000_u32.saturating_add(rng.next_u32() % 20_000)).ok()?;
            let listener = TcpListener::bind(("127.0.0.1", wanted)).ok()?;
            held.push(listener);
            Some(wanted)
        })
    };
    let found = (0..count).map(|_| Some(Ports { p2p: port()?, rpc: port()? })).collect::<Option<_>>();
    found.ok_or_else(|| Failure::Failed("no free loopback ports found between 12000 and 32000".to_owned()))
}
