package main

import (
	"fmt"
	"time"
)

const (
	settle = 150 * time.Millisecond
	// givenUp is how many samples may miss their limit before a kind is given up.
	givenUp = 2
)

// change is one sample: what is posted, and what tells that it has arrived.
type change struct {
	post    func() error
	arrived func() bool
	// undo is done when all samples of the kind have been taken.
	undo func() error
	end  func()
}

// Propagation tells how long changes take from the API server's acceptance to the first right
// answer.
type Propagation map[string]Spread

func (d *Driver) propagate() Propagation {
	kinds := []struct {
		name string
		make func(number int) (change, error)
	}{
		{"set", d.newSet}, {"route", d.newRoute}, {"certificate", d.newCertificate}, {"endpoint", d.newEndpoint},
	}
	propagation := Propagation{}
	for _, kind := range kinds {
		propagation[kind.name] = d.sample(kind.name, kind.make)
		logf("%s: %+v", kind.name, propagation[kind.name])
	}
	return propagation
}

func (d *Driver) sample(name string, make func(number int) (change, error)) Spread {
	samples, missed := []time.Duration{}, 0
	undos := []func() error{}
	deadline := time.Now().Add(seconds(d.config.KindSeconds))
	for number := range d.config.Samples {
		if missed >= givenUp || time.Now().After(deadline) {
			break
		}
		d.changes++
		each, err := make(d.changes)
		if err == nil {
			err = each.post()
		}
		if err != nil {
			logf("%s %d: %v", name, number, err)
			missed++
			continue
		}
		if each.undo != nil {
			undos = append(undos, each.undo)
		}
		if took, arrived := awaited(each.arrived, seconds(d.config.SampleSeconds)); arrived {
			samples = append(samples, took)
		} else {
			missed++
		}
		if each.end != nil {
			each.end()
		}
		time.Sleep(settle)
	}
	for _, undo := range undos {
		if err := undo(); err != nil {
			logf("%s: %v", name, err)
		}
	}
	return spreadOf(samples, missed)
}

// awaited asks again after a pause that is a twentieth of the time that has passed: quick changes
// are timed to the millisecond, and slow ones do not cost the machine thousands of handshakes.
func awaited(arrived func() bool, limit time.Duration) (time.Duration, bool) {
	began := time.Now()
	for {
		if arrived() {
			return time.Since(began), true
		}
		passed := time.Since(began)
		if passed > limit {
			return passed, false
		}
		time.Sleep(min(max(passed/20, time.Millisecond), 250*time.Millisecond))
	}
}

func (d *Driver) existing(number int) *Tenant { return d.tenants[(number*7919)%len(d.tenants)] }

func (d *Driver) newSet(number int) (change, error) {
	host := d.existing(number)
	name := fmt.Sprintf("added-%05d", number)
	tenant, err := newTenant(host.namespace, name, name+".example.com")
	if err != nil {
		return change{}, err
	}
	objects := []Object{tenant.secret(), tenant.listenerSet(), tenant.route(name, "/", host.name)}
	return change{
		post: d.posts(objects...),
		arrived: func() bool {
			answer, err := visit(d.address, tenant.host, "/")
			return err == nil && answer.status == 200 && answer.leaf == tenant.certificate.leaf
		},
		undo: d.removes(objects...),
	}, nil
}

func (d *Driver) newRoute(number int) (change, error) {
	tenant := d.existing(number)
	name := fmt.Sprintf("added-%05d", number)
	route := tenant.route(name, "/"+name, tenant.name)
	session := &Session{address: d.address, host: tenant.host}
	if _, err := session.get("/" + name); err != nil {
		return change{}, err
	}
	return change{
		post: d.posts(route),
		arrived: func() bool {
			answer, err := session.get("/" + name)
			return err == nil && answer.status == 200
		},
		undo: d.removes(route),
		end:  session.close,
	}, nil
}

func (d *Driver) newCertificate(number int) (change, error) {
	tenant := d.existing(number)
	certificate, err := newCertificate(tenant.host)
	if err != nil {
		return change{}, err
	}
	return change{
		post: func() error {
			tenant.certificate = certificate
			return d.api.patch(tenant.secret().path(), content{"data": certificate.data()})
		},
		arrived: func() bool {
			connection, err := connect(d.address, tenant.host)
			if err != nil {
				return false
			}
			defer connection.close()
			return connection.leaf() == certificate.leaf
		},
	}, nil
}

func (d *Driver) newEndpoint(number int) (change, error) {
	tenant := d.existing(number)
	session := &Session{address: d.address, host: tenant.host}
	answer, err := session.get(routePath(0))
	if err != nil {
		return change{}, err
	}
	wanted := d.second
	if answer.body == d.second.name {
		wanted = d.first
	}
	slice := tenant.slice(wanted)
	patch := content{"ports": slice.content["ports"], "endpoints": slice.content["endpoints"]}
	return change{
		post: func() error { return d.api.patch(slice.path(), patch) },
		arrived: func() bool {
			answer, err := session.get(routePath(0))
			return err == nil && answer.status == 200 && answer.body == wanted.name
		},
		end: session.close,
	}, nil
}

func (d *Driver) posts(objects ...Object) func() error {
	return func() error {
		for _, object := range objects {
			if err := d.create(object); err != nil {
				return err
			}
		}
		return nil
	}
}

func (d *Driver) removes(objects ...Object) func() error {
	return func() error {
		for _, object := range objects {
			if err := d.api.remove(object.path(), nil); err != nil {
				return err
			}
		}
		return nil
	}
}
