module verifyecdsa

go 1.24
