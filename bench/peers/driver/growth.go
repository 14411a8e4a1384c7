package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	creators = 16
	// sweepers ask all tenants for all of their routes when statuses say that all is well.
	sweepers   = 8
	sweepLimit = 120 * time.Second
	// calm is how long nothing may be written before a size counts as settled.
	calm = 5 * time.Second
)

// Growth is what it took to reach a size from the one before.
type Growth struct {
	SetsAdded       int     `json:"setsAdded"`
	Objects         int     `json:"objects"`
	CreationSeconds float64 `json:"creationSeconds"`
	// TrueSeconds is from the first creation until all statuses are true, TrueAfterSeconds from the
	// last.
	TrueSeconds      float64         `json:"trueSeconds"`
	TrueAfterSeconds float64         `json:"trueAfterSeconds"`
	AllTrue          bool            `json:"allTrue"`
	Tally            Tally           `json:"tally"`
	Lies             Lies            `json:"lies"`
	Others           Bystanders      `json:"others"`
	Writes           Writes          `json:"writes"`
	Cost             map[string]Cost `json:"cost"`
	Sweep            Sweep           `json:"sweep"`
	DriverCPUSeconds float64         `json:"driverCpuSeconds"`
}

// Sweep is the whole truth at the end: every route of every tenant is asked for.
type Sweep struct {
	Requests int            `json:"requests"`
	Failed   int            `json:"failed"`
	Reasons  map[string]int `json:"reasons"`
	Complete bool           `json:"complete"`
}

func (d *Driver) grow(size int, limit time.Duration) (Growth, error) {
	added, err := d.prepare(size)
	if err != nil {
		return Growth{}, err
	}
	d.regulars.take()
	count, costs, cpu := d.audit.mark(), d.meter.mark(), ownCPU()
	detector := newLieDetector(d.address, d.statuses.set)
	d.detector.Store(detector)
	stop := make(chan struct{})
	go detector.run(stop)

	began := time.Now()
	if err := d.createAll(added, detector); err != nil {
		close(stop)
		return Growth{}, err
	}
	created := time.Now()
	growth := Growth{SetsAdded: len(added), Objects: len(added) * (4 + d.config.Routes),
		CreationSeconds: created.Sub(began).Seconds()}
	d.tenants = append(d.tenants, added...)
	growth.AllTrue = d.awaitTrue(created.Add(limit))
	growth.TrueSeconds, growth.TrueAfterSeconds = time.Since(began).Seconds(), time.Since(created).Seconds()
	growth.DriverCPUSeconds = ownCPU() - cpu
	growth.Tally = d.statuses.tally(d.config.Routes)
	logf("%d sets: created in %.1f s, all true: %v after %.1f s", size, growth.CreationSeconds, growth.AllTrue, growth.TrueSeconds)

	growth.Writes, err = count.quiet(calm, 30*time.Second)
	if err != nil {
		close(stop)
		return growth, err
	}
	close(stop)
	growth.Lies = detector.finish()
	growth.Others = d.regulars.take()
	growth.Cost = d.meter.since(costs)
	growth.Sweep = d.sweep()
	return growth, nil
}

// prepare makes namespaces and keys, which are nobody's work but the driver's.
func (d *Driver) prepare(size int) ([]*Tenant, error) {
	added := []*Tenant{}
	namespaces := map[string]bool{}
	for number := len(d.tenants); number < size; number++ {
		tenant, err := numberedTenant(number)
		if err != nil {
			return nil, err
		}
		added = append(added, tenant)
		namespaces[tenant.namespace] = true
	}
	for namespace := range namespaces {
		if err := d.api.create(namespaceObject(namespace)); err != nil {
			return nil, err
		}
	}
	return added, nil
}

func (d *Driver) createAll(tenants []*Tenant, detector *LieDetector) error {
	next := atomic.Int64{}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var workers sync.WaitGroup
	for range creators {
		workers.Go(func() {
			for ctx.Err() == nil {
				index := int(next.Add(1)) - 1
				if index >= len(tenants) {
					return
				}
				if err := d.createTenant(tenants[index]); err != nil {
					cancel(err)
					return
				}
				detector.add(tenants[index])
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

func (d *Driver) createTenant(tenant *Tenant) error {
	objects := []Object{tenant.secret(), tenant.service(), tenant.slice(d.first), tenant.listenerSet()}
	for _, object := range append(objects, tenant.routes(d.config.Routes)...) {
		if err := d.create(object); err != nil {
			return err
		}
	}
	return nil
}

// create repeats what the API server turned down for being busy.
func (d *Driver) create(object Object) error {
	var err error
	for try := range 5 {
		if err = d.api.create(object); err == nil {
			return nil
		}
		time.Sleep(time.Duration(try+1) * 200 * time.Millisecond)
	}
	return err
}

func (d *Driver) awaitTrue(deadline time.Time) bool {
	sets := len(d.tenants) + len(d.known)
	told := time.Now()
	for {
		tally := d.statuses.tally(d.config.Routes)
		if tally.complete(sets, sets*d.config.Routes) {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		if time.Since(told) > 20*time.Second {
			logf("%d of %d sets are programmed, %d of %d routes are true", tally.SetsProgrammed, sets, tally.RoutesTrue, sets*d.config.Routes)
			told = time.Now()
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (d *Driver) sweep() Sweep {
	sweep := Sweep{Reasons: map[string]int{}}
	next := atomic.Int64{}
	deadline := time.Now().Add(sweepLimit)
	var mutex sync.Mutex
	var workers sync.WaitGroup
	for range sweepers {
		workers.Go(func() {
			for time.Now().Before(deadline) {
				index := int(next.Add(1)) - 1
				if index >= len(d.tenants) {
					return
				}
				failures := d.askAll(d.tenants[index])
				mutex.Lock()
				sweep.Requests += d.config.Routes
				for reason, count := range failures {
					sweep.Failed += count
					sweep.Reasons[reason] += count
				}
				mutex.Unlock()
			}
		})
	}
	workers.Wait()
	sweep.Complete = sweep.Requests == len(d.tenants)*d.config.Routes
	logf("sweep: %d requests, %d failed %v", sweep.Requests, sweep.Failed, sweep.Reasons)
	return sweep
}

func (d *Driver) askAll(tenant *Tenant) map[string]int {
	failures := map[string]int{}
	session := &Session{address: d.address, host: tenant.host}
	defer session.close()
	for route := range d.config.Routes {
		answer, err := session.get(routePath(route))
		switch {
		case err != nil || answer.status != 200:
			failures[reasonOf(answer, err)]++
		case answer.leaf != tenant.certificate.leaf:
			failures["another certificate"]++
		case answer.body != d.first.name && answer.body != d.second.name:
			failures[fmt.Sprintf("an answer of %d bytes from nobody known", len(answer.body))]++
		}
	}
	return failures
}
