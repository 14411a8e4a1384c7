package main

import (
	"fmt"
	"strings"
	"time"
)

const (
	// setsPerChange are created around each change of leader.
	setsPerChange = 50
	// beforeChange is how long sets have been coming when the leader is told to end.
	beforeChange     = 500 * time.Millisecond
	leaderTrueLimit  = 120 * time.Second
	leaderReadyLimit = 180 * time.Second
	notTrue          = time.Duration(-1)
)

// LeaderChanges is what statuses and other tenants saw while the leader was told to end again and
// again, each time in the middle of a burst of new sets.
type LeaderChanges struct {
	Runs int `json:"runs"`
	// Lies of all runs together.
	Lies Lies `json:"lies"`
	// True is, of each run, from the last creation until all statuses are true.
	True    Spread     `json:"true"`
	Others  Bystanders `json:"others"`
	Problem string     `json:"problem,omitempty"`
}

func (d *Driver) leaderChanges() LeaderChanges {
	result := LeaderChanges{}
	times, missed := []time.Duration{}, 0
	d.regulars.take()
	for run := range d.config.LeaderChanges {
		lies, took, err := d.leaderChange(run)
		if err != nil {
			result.Problem = err.Error()
			break
		}
		result.Runs++
		result.Lies.add(lies)
		if took == notTrue {
			missed++
		} else {
			times = append(times, took)
		}
	}
	result.True, result.Others = spreadOf(times, missed), d.regulars.take()
	logf("%d changes of leader: %+v, true after %+v, %d of %d requests failed %v %s", result.Runs, result.Lies,
		result.True, result.Others.Failed, result.Others.Requests, result.Others.Reasons, result.Problem)
	return result
}

// leaderChange creates sets, tells the leader to end meanwhile, and waits until all is true. The time
// is from the last creation until then.
func (d *Driver) leaderChange(run int) (Lies, time.Duration, error) {
	leader, err := d.leader()
	if err != nil {
		return Lies{}, 0, err
	}
	added, err := d.burst(run)
	if err != nil {
		return Lies{}, 0, err
	}
	detector := newLieDetector(d.address, d.statuses.set)
	d.detector.Store(detector)
	stop := make(chan struct{})
	go detector.run(stop)
	ended := make(chan error, 1)
	go func() {
		time.Sleep(beforeChange)
		ended <- d.deletePods(nil)([]pod{leader})
	}()
	err = d.createAll(added, detector)
	created := time.Now()
	before := d.tenants
	d.tenants = append(before[:len(before):len(before)], added...)
	if failure := <-ended; err == nil {
		err = failure
	}
	took := notTrue
	if err == nil && d.awaitTrue(created.Add(leaderTrueLimit)) {
		took = time.Since(created)
	}
	// What is false now must be so for long enough to be found out.
	time.Sleep(2 * tolerated)
	close(stop)
	lies := detector.finish()
	d.tenants = before
	if err == nil {
		err = d.removeAll(added)
	}
	if err == nil {
		_, err = replaced(d.api, d.config.ControllerPods, []pod{leader}, leaderReadyLimit)
	}
	return lies, took, err
}

// leader is the pod of the controller that holds a lease.
func (d *Driver) leader() (pod, error) {
	pods, err := podsOf(d.api, d.config.ControllerPods)
	if err != nil {
		return pod{}, err
	}
	var leases struct {
		Items []struct {
			Spec struct {
				HolderIdentity string `json:"holderIdentity"`
			} `json:"spec"`
		} `json:"items"`
	}
	namespace := d.config.ControllerPods.Namespace
	if err := d.api.get("/apis/coordination.k8s.io/v1/namespaces/"+namespace+"/leases", &leases); err != nil {
		return pod{}, err
	}
	for _, lease := range leases.Items {
		for _, each := range pods {
			if strings.HasPrefix(lease.Spec.HolderIdentity, each.Metadata.Name) {
				return each, nil
			}
		}
	}
	return pod{}, fmt.Errorf("no pod of the controller holds a lease")
}

func (d *Driver) burst(run int) ([]*Tenant, error) {
	namespace := fmt.Sprintf("burst-%d-%02d", len(d.tenants), run)
	if err := d.api.create(namespaceObject(namespace)); err != nil {
		return nil, err
	}
	added := []*Tenant{}
	for number := range setsPerChange {
		name := fmt.Sprintf("set-%02d", number)
		tenant, err := newTenant(namespace, name, fmt.Sprintf("%s.%s.example.com", name, namespace))
		if err != nil {
			return nil, err
		}
		added = append(added, tenant)
	}
	return added, nil
}

func (d *Driver) removeAll(tenants []*Tenant) error {
	for _, tenant := range tenants {
		for _, object := range append(tenant.routes(d.config.Routes), tenant.listenerSet()) {
			if err := d.api.remove(object.path(), nil); err != nil {
				return err
			}
		}
	}
	return nil
}
