//! The files of RRDP (RFC 8182). What is published is read from them again: there is no other record of it that could say something else.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use rpki::{
    rrdp::{
        Delta, DeltaElement, DeltaInfo, Hash, NotificationFile, PublishElement, Snapshot, UpdateElement, UriAndHash,
        WithdrawElement,
    },
    uri::Https,
};
use uuid::Uuid;

use crate::{
    disk::{Disk, replace},
    objects::Objects,
};

const NOTIFICATION: &str = "notification.xml";

/// Why what is published cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    /// The file system said no, perhaps only now.
    #[error("{}: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
    /// A file is missing or says something else than another one: relying parties cannot use it either.
    #[error("{0}")]
    Unusable(String),
}

/// What is published.
pub(crate) struct Published {
    pub(crate) session: Uuid,
    pub(crate) serial: u64,
    pub(crate) objects: Objects,
    /// Oldest first, with the size in bytes.
    deltas: Vec<(DeltaInfo, usize)>,
    /// The files that the notification names, from the folder of RRDP.
    pub(crate) files: BTreeSet<PathBuf>,
}

/// Reads what is published in `folder` under `base`; `None` if there is no notification.
pub(crate) fn read(folder: &Path, base: &Https) -> Result<Option<Published>, StateError> {
    let path = folder.join(NOTIFICATION);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(StateError::File { path, source }),
    };
    let unusable = |error: &dyn std::fmt::Display| StateError::Unusable(format!("{NOTIFICATION}: {error}"));
    let mut notification = NotificationFile::parse(bytes.as_slice()).map_err(|error| unusable(&error))?;
    let last = notification.deltas().iter().map(DeltaInfo::serial).max();
    if !notification.sort_and_verify_deltas(None) || last.is_some_and(|last| last != notification.serial()) {
        return Err(unusable(&"its deltas do not lead to its serial"));
    }
    let mut files = BTreeSet::new();
    let (path, bytes) = named(folder, base, notification.snapshot())?;
    files.insert(path);
    let snapshot =
        Snapshot::parse(bytes.as_slice()).map_err(|error| StateError::Unusable(format!("snapshot: {error}")))?;
    if snapshot.session_id() != notification.session_id() || snapshot.serial() != notification.serial() {
        return Err(unusable(&"its snapshot is of another session or serial"));
    }
    let mut objects = Objects::default();
    for (uri, bytes) in snapshot.into_elements().into_iter().map(PublishElement::unpack) {
        objects.insert(uri.to_string(), bytes).map_err(|error| StateError::Unusable(format!("{uri}: {error}")))?;
    }
    let mut deltas = Vec::new();
    for delta in notification.deltas() {
        let (path, bytes) = named(folder, base, delta)?;
        files.insert(path);
        deltas.push((delta.clone(), bytes.len()));
    }
    let (session, serial) = (notification.session_id(), notification.serial());
    Ok(Some(Published { session, serial, objects, deltas, files }))
}

/// A file that the notification names: its path from the folder, and what is in it.
fn named(folder: &Path, base: &Https, file: &UriAndHash) -> Result<(PathBuf, Vec<u8>), StateError> {
    let uri = file.uri();
    let relative = uri.as_str().strip_prefix(base.as_str());
    let relative = relative.ok_or_else(|| StateError::Unusable(format!("{uri} is not below {base}")))?;
    // The parser of URIs has no opinion about segments with dots.
    if relative.split('/').any(|segment| segment.is_empty() || segment.starts_with('.')) {
        return Err(StateError::Unusable(format!("{uri} leads out of the folder")));
    }
    let path = folder.join(relative);
    match fs::read(&path) {
        Ok(bytes) if file.hash().matches(&bytes) => Ok((PathBuf::from(relative), bytes)),
        Ok(_) => Err(StateError::Unusable(format!("{uri} has another hash than the notification says"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(StateError::Unusable(format!("{uri} is missing"))),
        Err(source) => Err(StateError::File { path, source }),
    }
}

/// Publishes objects after `before`, in its session, or in a new one. The notification is last: until it is replaced, relying parties see
/// nothing of it.
pub(crate) fn publish<D: Disk>(
    disk: &D,
    folder: &Path,
    base: &Https,
    before: Option<&Published>,
    objects: &Objects,
    most_deltas: usize,
) -> io::Result<Published> {
    let next = before.and_then(|before| Some((before, before.serial.checked_add(1)?)));
    let (session, serial) = match next {
        Some((before, serial)) => (before.session, serial),
        // A new session begins with 1 (RFC 8182, section 3.3.1).
        None => (uuid::Builder::from_random_bytes(unguessable()?).into_uuid(), 1),
    };
    // The names of new files cannot be asked for before the notification has them: no cache answers that they are not there.
    let place = format!("{session}/{serial}/{}", hex::encode(unguessable()?));
    let named = |file: &str, xml: &[u8]| {
        let uri = Https::from_string(format!("{base}{place}/{file}")).map_err(io::Error::other)?;
        Ok::<_, io::Error>((uri, Hash::from_data(xml)))
    };
    let all = objects.iter().map(|object| PublishElement::new(object.uri.clone(), object.bytes.clone())).collect();
    let mut snapshot_xml = Vec::new();
    Snapshot::new(session, serial, all).write_xml(&mut snapshot_xml)?;
    let mut delta_xml = Vec::new();
    let mut deltas: Vec<(DeltaInfo, usize)> = Vec::new();
    if let Some((before, _)) = next {
        Delta::new(session, serial, changes(&before.objects, objects)).write_xml(&mut delta_xml)?;
        let (uri, hash) = named("delta.xml", &delta_xml)?;
        deltas.extend(before.deltas.iter().cloned());
        deltas.push((DeltaInfo::new(serial, uri, hash), delta_xml.len()));
        deltas = newest(deltas, snapshot_xml.len(), most_deltas);
    }
    let (uri, hash) = named("snapshot.xml", &snapshot_xml)?;
    let infos = deltas.iter().map(|(delta, _)| delta.clone()).rev().collect();
    let notification = NotificationFile::new(session, serial, UriAndHash::new(uri, hash), infos);
    let mut notification_xml = Vec::new();
    notification.write_xml(&mut notification_xml)?;

    let new = folder.join(&place);
    disk.make_folder(&new)?;
    disk.write(&new.join("snapshot.xml"), &snapshot_xml)?;
    if !deltas.is_empty() {
        disk.write(&new.join("delta.xml"), &delta_xml)?;
    }
    // The new folder, those of the serial and the session, and the one of the notification.
    for above in new.ancestors().take(4) {
        disk.sync_folder(above)?;
    }
    replace(disk, folder, NOTIFICATION, &notification_xml)?;

    let uris =
        std::iter::once(notification.snapshot().uri()).chain(notification.deltas().iter().map(|delta| delta.uri()));
    let files = uris.filter_map(|uri| uri.as_str().strip_prefix(base.as_str())).map(PathBuf::from).collect();
    Ok(Published { session, serial, objects: objects.clone(), deltas, files })
}

fn unguessable() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes)
}

/// What leads from some objects to others.
pub(crate) fn changes(before: &Objects, after: &Objects) -> Vec<DeltaElement> {
    let hash = |bytes: &Bytes| Hash::from_data(bytes);
    let gone = before.iter().filter(|object| after.get(&object.uri).is_none());
    let gone = gone.map(|object| WithdrawElement::new(object.uri.clone(), hash(&object.bytes)).into());
    let new = after.iter().filter_map(|object| {
        let (uri, bytes) = (object.uri.clone(), object.bytes.clone());
        match before.get(&object.uri) {
            None => Some(PublishElement::new(uri, bytes).into()),
            Some(old) if old.bytes == bytes => None,
            Some(old) => Some(UpdateElement::new(uri, hash(&old.bytes), bytes).into()),
        }
    });
    gone.chain(new).collect()
}

/// The newest deltas that are together not larger than the snapshot (RFC 8182, section 3.3.2), at most `most` of them; oldest first.
fn newest(mut deltas: Vec<(DeltaInfo, usize)>, snapshot: usize, most: usize) -> Vec<(DeltaInfo, usize)> {
    let mut total = 0_usize;
    let fitting = deltas.iter().rev().take(most).take_while(|(_, size)| {
        total = total.saturating_add(*size);
        total <= snapshot
    });
    let fitting = fitting.count();
    deltas.split_off(deltas.len().saturating_sub(fitting))
}
