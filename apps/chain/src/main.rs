//! `theta-chain`: the demonstration of a chain that nobody can front-run, and the validator in it.
//!
//! It does everything that `theta` does, so that the network needs one program besides CometBFT.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
};

use clap::{Args, Parser, Subcommand};
use theta::{
    cli::{ProductCommand, STYLES},
    connect, exit,
    exit::Failure,
    interrupt::{Unfinished, told_to_end},
    output::{self, Output},
};
use theta_chain::{
    net::{self, VALIDATOR},
    story, validator,
};
use theta_cluster::this_program;

const MORE: &str = "Every command but demo is theta's: cargo build --release makes target/release/theta, the product.";

/// A chain that nobody can front-run: four CometBFT validators with a Thetacrypt node each, on this machine.
#[derive(Debug, Parser)]
#[command(
    name = "theta-chain",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    max_term_width = 110,
    styles = STYLES,
    after_help = MORE,
    after_long_help = format!("{MORE}\n\n{}", exit::EXIT_CODES),
)]
struct Cli {
    /// Print results as JSON, one object on one line
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a chain and its group, and watch a front-runner among the validators fail
    Demo(DemoArgs),
    /// The application of one validator
    #[command(hide = true, name = VALIDATOR)]
    Validator(ValidatorArgs),
    #[command(flatten)]
    Product(ProductCommand),
}

/// Options of `theta-chain demo`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  cargo xtask chain                     builds CometBFT (with Go, once) and this program, and runs the demonstration
  theta-chain demo --cometbft ~/go/bin/cometbft

Everything is real: four processes of CometBFT, four nodes of a group, four applications; kills are SIGKILL.")]
struct DemoArgs {
    /// CometBFT 0.38 [default: $THETA_COMETBFT, PATH, or where cargo xtask chain builds it]
    #[arg(long, value_name = "FILE")]
    cometbft: Option<PathBuf>,
    /// Directory to make for the network, which stays [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct ValidatorArgs {
    /// The validator's directory
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Stop when standard input ends
    #[arg(long)]
    stop_on_eof: bool,
}

fn main() -> ExitCode {
    exit::main("theta-chain", |cli: Cli| {
        let output = Output::new(cli.json);
        match cli.command {
            Command::Demo(args) => demo(&args, output),
            Command::Validator(args) => serve(&args),
            Command::Product(command) => command.run(output),
        }
    })
}

fn demo(args: &DemoArgs, output: Output) -> Result<(), Failure> {
    let cometbft = net::find(args.cometbft.as_deref())?;
    let program = this_program()?;
    let Some(dir) = &args.dir else {
        let made = tempfile::Builder::new().prefix("theta-chain-").tempdir();
        let temporary = made.map_err(|error| Failure::writing(&std::env::temp_dir(), &error))?;
        let _unfinished = Unfinished::watch(temporary.path())?;
        let played = play(&program, &cometbft, &temporary.path().join("net"), output);
        if matches!(&played, Err(failure) if !matches!(failure, Failure::Interrupted(_))) {
            output::note(format_args!("the logs are {}/net/*/*.log", temporary.keep().display()));
        }
        return played;
    };
    play(&program, &cometbft, dir, output)
}

fn play(program: &Path, cometbft: &Path, dir: &Path, output: Output) -> Result<(), Failure> {
    connect::runtime()?.block_on(async {
        let told = told_to_end()?;
        tokio::select! {
            played = story::play(program, cometbft, dir, output) => played,
            signal = told => Err(Failure::Interrupted(signal)),
        }
    })
}

fn serve(args: &ValidatorArgs) -> Result<(), Failure> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let (ended, end_of_input) = tokio::sync::oneshot::channel::<()>();
    if args.stop_on_eof {
        thread::spawn(move || {
            // An error ends the input as well.
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            let _ = ended.send(());
        });
    } else {
        // Kept open, so that the end of input never comes.
        std::mem::forget(ended);
    }
    connect::runtime()?.block_on(async {
        tokio::select! {
            ran = validator::run(&args.dir) => ran,
            _ = end_of_input => Ok(()),
        }
    })
}
