package main

import (
	"context"
	"sync"
	"time"
)

type condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason"`
	ObservedGeneration int64  `json:"observedGeneration"`
}

// stored is what the driver reads of a ListenerSet, a Gateway or a route.
type stored struct {
	Metadata struct {
		Namespace  string `json:"namespace"`
		Name       string `json:"name"`
		Generation int64  `json:"generation"`
	} `json:"metadata"`
	Status struct {
		Addresses []struct {
			Value string `json:"value"`
		} `json:"addresses"`
		AttachedListenerSets int         `json:"attachedListenerSets"`
		Conditions           []condition `json:"conditions"`
		Listeners            []struct {
			AttachedRoutes int         `json:"attachedRoutes"`
			Conditions     []condition `json:"conditions"`
		} `json:"listeners"`
		Parents []struct {
			ControllerName string      `json:"controllerName"`
			Conditions     []condition `json:"conditions"`
		} `json:"parents"`
	} `json:"status"`
}

func (s *stored) key() string { return s.Metadata.Namespace + "/" + s.Metadata.Name }

// says whether conditions hold of the newest generation.
func (s *stored) says(conditions []condition, types ...string) bool {
	for _, wanted := range types {
		found := false
		for _, each := range conditions {
			if each.Type == wanted && each.Status == "True" && each.ObservedGeneration >= s.Metadata.Generation {
				found = true
			}
		}
		if !found {
			return false
		}
	}
	return true
}

// programmed is what a set's status claims about its traffic.
func (s *stored) programmed() bool {
	if !s.says(s.Status.Conditions, "Accepted", "Programmed") || len(s.Status.Listeners) == 0 {
		return false
	}
	for _, listener := range s.Status.Listeners {
		if !s.says(listener.Conditions, "Programmed") {
			return false
		}
	}
	return true
}

func (s *stored) attachedRoutes() int {
	sum := 0
	for _, listener := range s.Status.Listeners {
		sum += listener.AttachedRoutes
	}
	return sum
}

// setState is a ListenerSet as its status tells it.
type setState struct {
	programmed bool
	since      time.Time
	attached   int
}

// Statuses follows what the API server holds of ListenerSets and HTTPRoutes.
type Statuses struct {
	mutex      sync.Mutex
	controller string
	sets       map[string]setState
	routes     map[string]bool
	trueRoutes int
	// onSet is called, outside of the lock, when what a set claims changes.
	onSet func(key string, state setState)
}

func followStatuses(ctx context.Context, api *API, controller string, onSet func(string, setState)) *Statuses {
	statuses := &Statuses{controller: controller, sets: map[string]setState{}, routes: map[string]bool{}, onSet: onSet}
	go watch(ctx, api, gatewayAPI+"/listenersets", statuses.takeSet)
	go watch(ctx, api, gatewayAPI+"/httproutes", statuses.takeRoute)
	return statuses
}

func (s *Statuses) takeSet(kind string, object stored) {
	key := object.key()
	s.mutex.Lock()
	before, known := s.sets[key]
	now := setState{programmed: object.programmed(), since: before.since, attached: object.attachedRoutes()}
	changed := !known || before.programmed != now.programmed
	if changed {
		now.since = time.Now()
	}
	if kind == "DELETED" {
		delete(s.sets, key)
	} else {
		s.sets[key] = now
	}
	s.mutex.Unlock()
	if changed && kind != "DELETED" {
		s.onSet(key, now)
	}
}

func (s *Statuses) takeRoute(kind string, object stored) {
	now := false
	for _, parent := range object.Status.Parents {
		if parent.ControllerName == s.controller {
			now = object.says(parent.Conditions, "Accepted", "ResolvedRefs")
		}
	}
	if kind == "DELETED" {
		now = false
	}
	key := object.key()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.routes[key] != now {
		if now {
			s.trueRoutes++
		} else {
			s.trueRoutes--
		}
	}
	if kind == "DELETED" {
		delete(s.routes, key)
	} else {
		s.routes[key] = now
	}
}

func (s *Statuses) set(key string) (setState, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	state, known := s.sets[key]
	return state, known
}

// Tally counts what is true among what there is.
type Tally struct {
	Sets           int `json:"sets"`
	SetsProgrammed int `json:"setsProgrammed"`
	// SetsCounted are those that count as many attached routes as were created.
	SetsCounted int `json:"setsCounted"`
	Routes      int `json:"routes"`
	RoutesTrue  int `json:"routesTrue"`
}

func (t Tally) complete(sets, routes int) bool {
	return t.SetsProgrammed >= sets && t.SetsCounted >= sets && t.RoutesTrue >= routes
}

func (s *Statuses) tally(routesPerSet int) Tally {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	tally := Tally{Sets: len(s.sets), Routes: len(s.routes), RoutesTrue: s.trueRoutes}
	for _, state := range s.sets {
		if state.programmed {
			tally.SetsProgrammed++
		}
		if state.attached >= routesPerSet {
			tally.SetsCounted++
		}
	}
	return tally
}
