import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { frame, GrpcFrameReader } from "../../../../src/dataplanes/envoy/wire/grpc-frames.ts";
import * as proto from "../../../../src/dataplanes/envoy/wire/proto.ts";
import {
  explicitText,
  message,
  nested,
  read,
  text,
  texts,
  uint,
} from "../../../../src/dataplanes/envoy/wire/protobuf.ts";

describe("the wire", () => {
  test("what is written can be read", () => {
    fc.assert(
      fc.property(fc.string(), fc.array(fc.string()), fc.nat(), (one, many, number) => {
        const bytes = message(
          text(proto.VirtualHost.name, one),
          texts(proto.VirtualHost.domains, many),
          nested(proto.VirtualHost.requestBodyBufferLimit, message(uint(proto.UInt64Value.value, number))),
          explicitText(proto.VirtualHost.requestHeadersToRemove, ""),
        );
        const reader = read<proto.VirtualHost>(bytes);
        expect(reader.text(proto.VirtualHost.name)).toBe(one.toWellFormed());
        expect(reader.texts(proto.VirtualHost.domains)).toEqual(many.map((each) => each.toWellFormed()));
        const limit = reader.message(proto.VirtualHost.requestBodyBufferLimit);
        expect(limit?.uint(proto.UInt64Value.value)).toBe(number);
        expect(reader.texts(proto.VirtualHost.requestHeadersToRemove)).toEqual([""]);
      }),
    );
  });

  test("messages are whole whatever the chunks, and too long or broken ones are refused", () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 5 }),
        fc.integer({ min: 1, max: 17 }),
        (messages, size) => {
          const bytes = Buffer.concat(messages.map(frame));
          const reader = new GrpcFrameReader(1000);
          const got: Buffer[] = [];
          for (let at = 0; at < bytes.length; at += size)
            got.push(...reader.push(bytes.subarray(at, at + size)));
          expect(got.map((each) => [...each])).toEqual(messages.map((each) => [...each]));
        },
      ),
    );
    expect(() => new GrpcFrameReader(3).push(frame(Buffer.alloc(4)))).toThrow(RangeError);
    expect(() => read(Buffer.from([0x0a, 5, 1]))).toThrow(RangeError);
  });
});
