// A communicator that can compare a call over its members without moving data, so that others can be built from it.
#pragma once
#include "runtime/comm/call_record.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/flight_recorder.h"

namespace drivetrain {

class AgreeingCommunicator : public Communicator {
 public:
  // Collective. Throws kComm on every rank, naming both calls, when members bring different calls. Fills in the
  // record's sequence number and arrival; returns the last arrival.
  virtual std::int64_t agree(CallRecord& call) = 0;
  // This group becomes part of a larger communicator, which notes its own calls in the flight recorder; this one goes
  // on noting only what is told. Returns the number of the larger one there.
  virtual std::uint32_t become_part(Recording recording) = 0;
};

}  // namespace drivetrain
