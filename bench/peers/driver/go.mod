module mergeway.test/peers-driver

go 1.26.0
