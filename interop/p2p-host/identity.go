package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"time"
)

// identity reads the host's key, or makes it, and a certificate for it. Nodes know the host by the SHA-256 of its public key.
func identity(file string) (certificate tls.Certificate, fingerprint string, err error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		text, err = makeKey(file)
	}
	if err != nil {
		return certificate, "", err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return certificate, "", errors.New(file + " has no key in it")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return certificate, "", err
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return certificate, "", errors.New(file + " has another kind of key in it than ECDSA")
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"host"}, NotAfter: time.Now().AddDate(10, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return certificate, "", err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	digest := sha256.Sum256(public)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, hex.EncodeToString(digest[:]), err
}

func makeKey(file string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	return text, os.WriteFile(file, text, 0o600)
}
