import { describe, expect, test } from "vitest";
import {
  backendOfCluster,
  clusterName,
  listenerOfWord,
  listenerWord,
} from "../../../../src/dataplanes/envoy/compile/names.ts";

describe("names", () => {
  test("within an Envoy names say neither kind nor Gateway, and still lead back to their items", () => {
    expect(clusterName("infra/edge", "backend:infra/edge:shop/web:80", "h2")).toBe("shop/web:80#h2");
    expect(listenerWord("infra/edge", "listener:infra/edge:ListenerSet/shop/own#a b")).toBe(
      "ListenerSet/shop/own#a%20b",
    );
    const ids = [
      "backend:infra/edge:shop/web:80",
      "listener:infra/edge:Gateway/infra/edge#http",
      // Of other Gateways, or of nobody's making: they must not be taken for the ones above.
      "backend:infra/other:shop/web:80",
      "shop/web:80",
      "Gateway/infra/edge#http",
      "=",
    ];
    const names = ids.map((id) => clusterName("infra/edge", id, "plain"));
    const words = ids.map((id) => listenerWord("infra/edge", id));
    expect(names.map((name) => backendOfCluster("infra/edge", name))).toEqual(ids);
    expect(words.map((word) => listenerOfWord("infra/edge", word))).toEqual(ids);
  });
});
