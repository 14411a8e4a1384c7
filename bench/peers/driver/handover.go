package main

import (
	"fmt"
	"time"
)

// HandOver is of a hostname that two sets ask for: the holder goes, the other one serves it.
type HandOver struct {
	Times Spread `json:"times"`
	// Requests are those of a client that asks for the hostname throughout; Failed got no right
	// answer of either owner.
	Requests int            `json:"requests"`
	Failed   int            `json:"failed"`
	Reasons  map[string]int `json:"reasons"`
}

func (d *Driver) handOvers() HandOver {
	result := HandOver{Reasons: map[string]int{}}
	samples, missed := []time.Duration{}, 0
	deadline := time.Now().Add(seconds(d.config.KindSeconds))
	for range d.config.HandOvers {
		if missed >= givenUp || time.Now().After(deadline) {
			break
		}
		d.changes++
		took, arrived, err := d.handOver(d.changes, &result)
		if err != nil {
			logf("hand-over: %v", err)
		}
		if arrived {
			samples = append(samples, took)
		} else {
			missed++
		}
	}
	result.Times = spreadOf(samples, missed)
	logf("hand-over: %+v", result)
	return result
}

func (d *Driver) handOver(number int, result *HandOver) (time.Duration, bool, error) {
	host := fmt.Sprintf("contended-%05d.example.com", number)
	// The name decides between sets of one second.
	holder, err := newTenant(d.existing(number).namespace, fmt.Sprintf("a-contended-%05d", number), host)
	if err != nil {
		return 0, false, err
	}
	waiting, err := newTenant(holder.namespace, fmt.Sprintf("b-contended-%05d", number), host)
	if err != nil {
		return 0, false, err
	}
	service := d.existing(number).name
	objects := func(tenant *Tenant) []Object {
		return []Object{tenant.secret(), tenant.listenerSet(), tenant.route(tenant.name, "/", service)}
	}
	both := append(objects(holder), objects(waiting)...)
	defer func() {
		if err := d.removes(both...)(); err != nil {
			logf("hand-over: %v", err)
		}
	}()
	serves := func(tenant *Tenant) func() bool {
		return func() bool {
			answer, err := visit(d.address, host, "/")
			result.note(answer, err, answer.leaf == holder.certificate.leaf || answer.leaf == waiting.certificate.leaf)
			return err == nil && answer.status == 200 && answer.leaf == tenant.certificate.leaf
		}
	}
	limit := seconds(d.config.SampleSeconds)
	if err := d.posts(objects(holder)...)(); err != nil {
		return 0, false, err
	}
	if _, arrived := awaited(func() bool {
		answer, err := visit(d.address, host, "/")
		return err == nil && answer.status == 200
	}, limit); !arrived {
		return 0, false, fmt.Errorf("the first owner of %s is not served", host)
	}
	if err := d.posts(objects(waiting)...)(); err != nil {
		return 0, false, err
	}
	// Until the refusal is known everywhere; the holder must go on serving meanwhile.
	for until := time.Now().Add(time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		serves(holder)()
	}
	if err := d.api.remove(holder.listenerSet().path(), nil); err != nil {
		return 0, false, err
	}
	took, arrived := awaited(serves(waiting), limit)
	return took, arrived, nil
}

func (h *HandOver) note(answer Answer, err error, known bool) {
	h.Requests++
	if err == nil && answer.status == 200 && known {
		return
	}
	h.Failed++
	reason := reasonOf(answer, err)
	if err == nil && answer.status == 200 {
		reason = "another certificate"
	}
	h.Reasons[reason]++
}
