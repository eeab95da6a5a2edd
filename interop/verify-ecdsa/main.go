// Verifies signatures of ECDSA with Go's own library, as people who have nothing of ours would: P-256, SHA-256, DER.
//
//	verify-ecdsa public.pem message.der message
//
// The exit code is 0 if the signature is one of the message, 1 if it is not, and 2 if something cannot be read.
package main

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
)

func verify(keyFile, signatureFile, messageFile string) (bool, error) {
	text, err := os.ReadFile(keyFile)
	if err != nil {
		return false, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return false, errors.New("the key is not in PEM")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return false, err
	}
	key, ok := parsed.(*ecdsa.PublicKey)
	if !ok {
		return false, errors.New("the key is none of ECDSA")
	}
	signature, err := os.ReadFile(signatureFile)
	if err != nil {
		return false, err
	}
	message, err := os.ReadFile(messageFile)
	if err != nil {
		return false, err
	}
	digest := sha256.Sum256(message)
	return ecdsa.VerifyASN1(key, digest[:], signature), nil
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: verify-ecdsa public.pem message.der message")
		os.Exit(2)
	}
	good, err := verify(os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if !good {
		fmt.Println("this is not a signature of the message")
		os.Exit(1)
	}
	fmt.Println("good signature")
}
