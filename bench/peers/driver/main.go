// Command driver runs the same program against any implementation of the Gateway API: `driver peers
// CONFIG` grows one Gateway from size to size and measures; `driver load CONFIG` is a steady load.
// Results are lines of JSON on standard output, progress is told on standard error.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
)

// Driver is one run against one contestant.
type Driver struct {
	config   Config
	api      *API
	audit    AuditLog
	statuses *Statuses
	meter    *Meter
	regulars *Regulars
	detector atomic.Pointer[LieDetector]
	address  string
	first    Backend
	second   Backend
	// known are the tenants of the regulars, tenants those that make up the size.
	known   []*Tenant
	tenants []*Tenant
	changes int
}

// Result of one size, a line of output.
type Result struct {
	Size        int         `json:"size"`
	Growth      Growth      `json:"growth"`
	Propagation Propagation `json:"propagation"`
	HandOver    HandOver    `json:"handOver"`
	Restarts    *Restarts   `json:"restarts,omitempty"`
	// LeaderChanges are at the same sizes as restarts.
	LeaderChanges *LeaderChanges `json:"leaderChanges,omitempty"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: driver peers|load CONFIG")
		os.Exit(2)
	}
	var err error
	switch os.Args[1] {
	case "peers":
		err = peers(os.Args[2])
	case "load":
		err = load(os.Args[2])
	default:
		err = fmt.Errorf("there is no %q", os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func peers(path string) error {
	config, err := readConfig(path)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	driver, err := newDriver(ctx, config)
	if err != nil {
		return err
	}
	defer driver.regulars.end()
	out := json.NewEncoder(os.Stdout)
	for index, size := range config.Sizes {
		result := Result{Size: size}
		if result.Growth, err = driver.grow(size, seconds(config.Limits[index])); err != nil {
			return err
		}
		// Early, so that what follows cannot lose it.
		if err := out.Encode(result); err != nil {
			return err
		}
		result.Propagation = driver.propagate()
		result.HandOver = driver.handOvers()
		// A contestant that goes no further is restarted where it stands.
		if slices.Contains(config.RestartSizes, size) || !result.Growth.AllTrue {
			restarts := driver.restarts()
			result.Restarts = &restarts
			changes := driver.leaderChanges()
			result.LeaderChanges = &changes
		}
		if err := out.Encode(result); err != nil {
			return err
		}
		if !result.Growth.AllTrue {
			logf("not everything became true in time: larger sizes are left out")
			return nil
		}
	}
	return nil
}

func newDriver(ctx context.Context, config Config) (*Driver, error) {
	api, err := newAPI(config)
	if err != nil {
		return nil, err
	}
	driver := &Driver{config: config, api: api, audit: AuditLog{config.AuditLog, config.AuditUser}}
	if driver.first, err = startBackend("first", config.BackendAddress+":0"); err != nil {
		return nil, err
	}
	if driver.second, err = startBackend("second", config.BackendAddress+":0"); err != nil {
		return nil, err
	}
	for _, namespace := range []string{infraNamespace, "regular"} {
		if err := api.create(namespaceObject(namespace)); err != nil {
			return nil, err
		}
	}
	if err := api.create(gatewayObject(config.Class)); err != nil {
		return nil, err
	}
	driver.statuses = followStatuses(ctx, api, config.Controller, func(key string, state setState) {
		if detector := driver.detector.Load(); detector != nil {
			detector.onSet(key, state)
		}
	})
	if err := driver.createRegulars(); err != nil {
		return nil, err
	}
	driver.meter = startMeter(api, config.Parts, config.Processes, ctx.Done())
	driver.regulars = startRegulars(driver.address, driver.known)
	return driver, nil
}

func (d *Driver) createRegulars() error {
	for number := range regularCount {
		name := fmt.Sprintf("regular-%d", number)
		tenant, err := newTenant("regular", name, name+".example.com")
		if err != nil {
			return err
		}
		if err := d.createTenant(tenant); err != nil {
			return err
		}
		d.known = append(d.known, tenant)
	}
	deadline := time.Now().Add(seconds(d.config.StartSeconds))
	if err := d.awaitAddress(deadline); err != nil {
		return err
	}
	for _, tenant := range d.known {
		if _, answers := awaited(func() bool {
			answer, err := visit(d.address, tenant.host, routePath(0))
			return err == nil && answer.status == 200
		}, time.Until(deadline)); !answers {
			return fmt.Errorf("%s is not served", tenant.host)
		}
	}
	if !d.awaitTrue(deadline) {
		return fmt.Errorf("the first statuses are not true: %+v", d.statuses.tally(d.config.Routes))
	}
	return nil
}

// awaitAddress waits for the Gateway's address. Its Programmed condition is the contestant's own
// affair.
func (d *Driver) awaitAddress(deadline time.Time) error {
	for time.Now().Before(deadline) {
		var gateway stored
		if err := d.api.get(gatewayObject("").path(), &gateway); err == nil && len(gateway.Status.Addresses) > 0 {
			d.address = gateway.Status.Addresses[0].Value + ":443"
			logf("the Gateway has address %s", d.address)
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("the Gateway got no address")
}

func ownCPU() float64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}
