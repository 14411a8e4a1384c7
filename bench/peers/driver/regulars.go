package main

import (
	"sync"
	"time"
)

const (
	regularCount = 8
	regularPause = 40 * time.Millisecond
)

// Bystanders is what clients of tenants that nobody touches have seen in a while.
type Bystanders struct {
	Requests  int            `json:"requests"`
	Failed    int            `json:"failed"`
	Reasons   map[string]int `json:"reasons"`
	Times     Spread         `json:"times"`
	OutageMs  float64        `json:"outageMs"`
	OutageEnd bool           `json:"outageEnded"`
}

// Regulars are clients of tenants that exist before everything else, half of them with a new
// connection for each request, half on kept ones.
type Regulars struct {
	mutex    sync.Mutex
	requests int
	failed   int
	reasons  map[string]int
	times    []time.Duration
	// firstFailure and lastFailure bound the time in which some requests failed.
	firstFailure, lastFailure time.Time
	stop                      chan struct{}
	ended                     sync.WaitGroup
}

func startRegulars(address string, tenants []*Tenant) *Regulars {
	regulars := &Regulars{reasons: map[string]int{}, stop: make(chan struct{})}
	for index, tenant := range tenants {
		regulars.ended.Add(1)
		go regulars.run(address, tenant, index%2 == 0)
	}
	return regulars
}

func (r *Regulars) run(address string, tenant *Tenant, keeps bool) {
	defer r.ended.Done()
	session := &Session{address: address, host: tenant.host}
	defer session.close()
	for number := 0; ; number++ {
		select {
		case <-r.stop:
			return
		case <-time.After(regularPause):
		}
		began := time.Now()
		answer, err := session.get(routePath(number % 4))
		r.note(began, answer, err, tenant)
		if !keeps {
			session.close()
		}
	}
}

func (r *Regulars) note(began time.Time, answer Answer, err error, tenant *Tenant) {
	now := time.Now()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.requests++
	r.times = append(r.times, now.Sub(began))
	if err == nil && answer.status == 200 && answer.leaf == tenant.certificate.leaf {
		return
	}
	r.failed++
	reason := reasonOf(answer, err)
	if err == nil && answer.status == 200 {
		reason = "another tenant's certificate"
	}
	r.reasons[reason]++
	if r.firstFailure.IsZero() {
		r.firstFailure = began
	}
	r.lastFailure = now
}

// take gives what was seen since it was last asked.
func (r *Regulars) take() Bystanders {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	seen := Bystanders{Requests: r.requests, Failed: r.failed, Reasons: r.reasons, Times: spreadOf(r.times, 0)}
	if r.failed > 0 {
		seen.OutageMs = milliseconds(r.lastFailure.Sub(r.firstFailure))
		seen.OutageEnd = time.Since(r.lastFailure) > time.Second
	}
	r.requests, r.failed, r.reasons, r.times = 0, 0, map[string]int{}, nil
	r.firstFailure, r.lastFailure = time.Time{}, time.Time{}
	return seen
}

func (r *Regulars) end() {
	close(r.stop)
	r.ended.Wait()
}
