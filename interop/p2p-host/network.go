// The network between hosts: plain TCP, which keeps nothing secret, and proves no more than an address. A real host authenticates its peers, for example by TLS.
package main

import (
	"encoding/binary"
	"errors"
	"io"
	"log"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	connections = 2               // of one peer
	strangers   = 64              // connections that have not said whose they are
	patience    = 5 * time.Second // for that, and for a peer that does not read
)

// peer is the host of another node. It calls from an address at which it is called.
type peer struct {
	address  string
	out, in  chan []byte
	mutex    sync.Mutex
	places   []string   // where it is, by the last look-up
	accepted []net.Conn // the oldest first
}

// dial keeps a connection to another host, which it tells whose frames these are, and writes what there is.
func (h *host) dial(to *peer) {
	for ; ; time.Sleep(200 * time.Millisecond) {
		name, _, _ := net.SplitHostPort(to.address)
		if places, err := net.LookupHost(name); err == nil {
			to.mutex.Lock()
			to.places = places
			to.mutex.Unlock()
		}
		connection, err := net.DialTimeout("tcp", to.address, patience)
		if err != nil {
			continue
		}
		header := binary.BigEndian.AppendUint32(nil, h.node)
		for _, err = connection.Write(header); err == nil; {
			frame := <-to.out
			buffers := net.Buffers{binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame}
			connection.SetWriteDeadline(time.Now().Add(patience))
			_, err = buffers.WriteTo(connection)
		}
		connection.Close()
	}
}

// listen takes connections of other hosts. One that cannot be taken now, for want of descriptors, is taken later.
func (h *host) listen(listener net.Listener) {
	unnamed := make(chan struct{}, strangers)
	for {
		connection, err := listener.Accept()
		if err != nil {
			log.Printf("no connection can be accepted: %v", err)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		place, _, _ := net.SplitHostPort(connection.RemoteAddr().String())
		if !h.somebodyIsAt(place) {
			connection.Close()
			continue
		}
		select {
		case unnamed <- struct{}{}:
			go h.accept(connection, place, func() { <-unnamed })
		default:
			connection.Close()
		}
	}
}

func (h *host) somebodyIsAt(place string) bool {
	for _, other := range h.peers {
		if other.isAt(place) {
			return true
		}
	}
	return false
}

func (p *peer) isAt(place string) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return slices.Contains(p.places, place)
}

// accept reads what another host writes.
func (h *host) accept(connection net.Conn, place string, named func()) error {
	defer connection.Close()
	from, err := h.hello(connection, place)
	named()
	if err != nil {
		return err
	}
	var header [4]byte
	for {
		if _, err := io.ReadFull(connection, header[:]); err != nil {
			return err
		}
		length := binary.BigEndian.Uint32(header[:])
		if length > frameBytes {
			return errors.New("a frame that is too long")
		}
		payload := make([]byte, length)
		if _, err := io.ReadFull(connection, payload); err != nil {
			return err
		}
		select {
		case from.in <- payload:
			h.wake()
		default: // The node is away or slow.
		}
	}
}

// hello reads whose connection this is, and ends the oldest of that peer's if there are too many.
func (h *host) hello(connection net.Conn, place string) (*peer, error) {
	var header [4]byte
	connection.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.ReadFull(connection, header[:]); err != nil {
		return nil, err
	}
	from := h.peers[binary.BigEndian.Uint32(header[:])]
	if from == nil || !from.isAt(place) {
		return nil, errors.New("a connection of nobody, or from elsewhere")
	}
	from.mutex.Lock()
	defer from.mutex.Unlock()
	from.accepted = append(from.accepted, connection)
	if len(from.accepted) > connections {
		from.accepted[0].Close()
		from.accepted = from.accepted[1:]
	}
	return from, connection.SetReadDeadline(time.Time{})
}
